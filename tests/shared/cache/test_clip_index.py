"""An index at the sizes that a large corpus has, and what is read off it."""

import csv
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from cache_files import index_bytes

from xtts.shared.cache.clip_index import read_index, speaker_languages
from xtts.shared.cache.stats import corpus_stats


def test_an_index_of_several_groups_is_read_in_its_order(kept_row, tmp_path):
    rows = [kept_row(f"clip-{number}", 5, 10) for number in range(2**14 + 3)]
    (tmp_path / "index.parquet").write_bytes(index_bytes(rows))
    assert pq.read_metadata(tmp_path / "index.parquet").num_row_groups == 2
    assert [row.clip.id for row in read_index(tmp_path / "index.parquet")] == [row.clip.id for row in rows]


def test_the_language_of_a_speaker_is_that_of_most_clips(kept_row, tmp_path):
    row, clips = kept_row("a", 5, 10), [("ann", "en"), ("ann", "de"), ("ben", "de"), ("ann", "de"), ("", "fa")]
    rows = [replace(row, clip=replace(row.clip, speaker=name, language=code)) for name, code in clips]
    (tmp_path / "index.parquet").write_bytes(index_bytes(rows))
    assert speaker_languages(tmp_path / "index.parquet") == {"ann": "de", "ben": "de", "": "fa"}


def test_ljspeech_has_the_documented_percentiles_and_padding_efficiencies(kept_row, tmp_path):
    with Path(__file__).with_name("ljspeech_frames.csv").open() as file:
        lengths = [int(line["frames"]) for line in csv.DictReader(file) for _ in range(int(line["clips"]))]
    rows = [kept_row(str(number), 9, frames) for number, frames in enumerate(lengths)]
    (tmp_path / "index.parquet").write_bytes(index_bytes(rows))
    stats = corpus_stats(tmp_path / "index.parquet")
    assert stats.clips == 13_100
    frames = stats.percentiles["frames"]
    assert (frames[0], frames[2], frames[3], frames[5]) == (582, 837, 863, 869)
    fill = {buckets: round(100 * share, 1) for buckets, share in stats.fill.items()}
    assert fill == {1: 64.9, 2: 77.8, 4: 87.0, 6: 90.9, 8: 92.9, 12: 95.1}
