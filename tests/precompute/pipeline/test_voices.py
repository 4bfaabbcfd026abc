"""The speakers' embeddings: which clips they come from, when they are computed again, and what checks them."""

import json

import numpy as np
import pytest
from builds import build, records, rows_of

from xtts.precompute.check.verify import check_cache
from xtts.precompute.pipeline import voices as voices_module
from xtts.shared.cache.cache_spec import load_spec, load_voices
from xtts.shared.errors import LockstepError

IMITATING = "model.voice_from=recording"


@pytest.fixture
def embedded(monkeypatch):
    """The seconds that each speaker's embeddings were computed from; the embedding is their sum."""
    seconds = []

    def embed_voices(recordings):
        assert recordings
        seconds.append([len(samples) / voices_module.RATE for samples in recordings])
        return np.full([7, 4, 296], sum(seconds[-1]), np.float16)

    monkeypatch.setattr(voices_module, "embed_voices", embed_voices)
    return seconds


def test_training_clips_are_embedded_once_without_a_new_shard(tiny_corpus, tmp_path, embedded):
    before = build(tiny_corpus, tmp_path / "cache").spec
    with pytest.raises(LockstepError, match=r"no embeddings of its speakers.*--set model\.voice_from=recording"):
        load_voices(tmp_path / "cache", before)
    report = build(tiny_corpus, tmp_path / "cache", IMITATING)
    spec = load_spec(tmp_path / "cache")
    assert spec.identity == before.identity, "a run with a speaker table resumes"
    train = [row for row in rows_of(tmp_path / "cache").values() if row.is_kept and row.split == "train"]
    (used,) = embedded
    wanted = sorted(train, key=lambda row: row.audio_sha256)[: len(used)]
    assert used == pytest.approx([row.seconds for row in wanted], abs=0.01)
    assert len(used) == len(train) or sum(used[:-1]) < 60 <= sum(used)
    assert load_voices(tmp_path / "cache", spec).shape == (1, 7, 4, 296)
    assert (report.written_shards, report.changed) == (0, True)
    assert not build(tiny_corpus, tmp_path / "cache", IMITATING).changed
    assert len(embedded) == 1
    build(tiny_corpus, tmp_path / "cache", IMITATING, "audio.loudness_lufs=-30")
    assert len(embedded) == 2, "of other samples"
    build(tiny_corpus, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("voices-*"))


def test_a_damaged_file_is_found_and_made_again(tiny_corpus, tmp_path, embedded):
    build(tiny_corpus, tmp_path / "cache", IMITATING)
    (path,) = (tmp_path / "cache").glob("voices-*.npy")
    spec = load_spec(tmp_path / "cache")
    for data in (b"", b"damaged", b"\x93NUMPY"):
        path.write_bytes(data)
        with pytest.raises(
            LockstepError, match=r"voices-.*cannot be read .*, expected float16 of shape \(1, 7, 4, 296\)"
        ):
            load_voices(tmp_path / "cache", spec)
    np.save(path, np.zeros([2, 7, 4, 296], np.float16))
    with pytest.raises(LockstepError, match=r"float16 of shape \(2, 7, 4, 296\), expected .*--repair"):
        load_voices(tmp_path / "cache", spec)
    assert [finding.location for finding in check_cache(tmp_path / "cache", threads=1)] == [path.name]
    build(tiny_corpus, tmp_path / "cache", IMITATING)
    assert check_cache(tmp_path / "cache", threads=1) == []


def test_each_speaker_has_a_row_and_keeps_it_without_clips(tone_corpus, tmp_path, embedded):
    lines = {f"{name}{i}": name for name in ("zoe", "ann") for i in range(12)}
    corpus = tone_corpus(tmp_path / "corpus", len(lines))
    listed = tmp_path / "clips.jsonl"
    wavs = sorted(corpus.rglob("*.wav"))

    def write(names):
        rows = [{"id": key, "audio_filepath": str(wav), "text": f"a {key[:3]} word", "speaker": name}
                for (key, name), wav in zip(lines.items(), wavs, strict=True) if name in names]
        listed.write_text("".join(json.dumps(row) + "\n" for row in rows))

    write(("zoe", "ann"))
    build(listed, tmp_path / "cache", IMITATING)
    first = load_voices(tmp_path / "cache", load_spec(tmp_path / "cache"))
    assert load_spec(tmp_path / "cache").speakers == ["ann", "zoe"]
    stored = {clip: record.speaker for clip, (record, *_) in records(tmp_path / "cache").items()}
    assert stored == {clip: ["ann", "zoe"].index(lines[clip]) for clip in stored}
    assert [row[0, 0, 0] for row in first] == pytest.approx([sum(own) for own in embedded], rel=1e-2)
    write(("zoe",))
    build(listed, tmp_path / "cache", IMITATING)
    ann, zoe = load_voices(tmp_path / "cache", load_spec(tmp_path / "cache"))
    assert not ann.any()
    assert (zoe == first[1]).all()
