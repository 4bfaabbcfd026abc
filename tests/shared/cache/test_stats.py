from cache_files import index_bytes

from xtts.shared.cache.stats import corpus_stats, read_lengths


def test_ljspeech_has_the_documented_percentiles(ljspeech_frames, kept_row, tmp_path):
    rows = [kept_row(str(number), 9, frames) for number, frames in enumerate(ljspeech_frames)]
    (tmp_path / "index.parquet").write_bytes(index_bytes(rows))
    stats = corpus_stats(read_lengths(tmp_path / "index.parquet"))
    assert stats.clips == 13_100
    frames = stats.percentiles["frames"]
    assert (frames[0], frames[2], frames[3], frames[5]) == (582, 837, 863, 869)
    assert [round(100 * stats.padding_efficiency[n], 1) for n in (8, 12)] == [92.9, 95.1]
