"""Clips that are segments of longer recordings: their samples, their rows in the ledger, and what a change rewrites."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from cache_files import index_path

from xtts.precompute.build.build_cache import BuildReport, build_cache
from xtts.precompute.check.against_corpus import cache_request, check_corpus, check_features
from xtts.precompute.check.verify import verify_cache
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Kept, Rejected, read_index
from xtts.shared.config_files import load_config

RATE = 22_050
SPANS = [(0.0, 1.5), (1.5, 1.25), (3.0, 2.0), (5.125, 0.75), (6.5, 1.5), (8.0, 1.0)]
"""Start and duration of the segments of a recording of ten seconds."""


def noise(seconds: float, seed: int = 0) -> np.ndarray:
    return (3000 * np.random.default_rng(seed).standard_normal(round(RATE * seconds))).astype(np.int16)


def config(*settings: str) -> Any:
    return load_config("tiny", assignments=["shapes.buckets=1", *settings])


def build(data: Path, cache: Path) -> BuildReport:
    return build_cache(data, cache, config(), workers=0, progress=NullProgress())


def write_nemo(root: Path, recordings: dict[str, np.ndarray], suffix: str = "wav") -> Path:
    root.mkdir(exist_ok=True)
    entries = []
    for name, samples in recordings.items():
        soundfile.write(root / f"{name}.{suffix}", samples, RATE)
        entries += [
            {"id": f"{name}{number}", "audio_filepath": f"{name}.{suffix}", "offset": start, "duration": duration,
             "text": f"clip {'abcdefgh'[number]} of {name}"}
            for number, (start, duration) in enumerate(SPANS)
        ]  # fmt: skip
    (root / "manifest.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return root


def write_cut(root: Path, recordings: dict[str, np.ndarray]) -> Path:
    """The same clips, each in a file of its own."""
    (root / "wavs").mkdir(parents=True)
    lines = []
    for name, samples in recordings.items():
        for number, (start, duration) in enumerate(SPANS):
            first = round(start * RATE)
            cut = samples[first : first + round((start + duration) * RATE) - first]
            soundfile.write(root / "wavs" / f"{name}{number}.wav", cut, RATE)
            lines.append(f"{name}{number}|clip {'abcdefgh'[number]} of {name}\n")
    (root / "metadata.csv").write_text("".join(lines))
    return root


def shards(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in sorted(cache.rglob("*.tfrecord"))}


@pytest.fixture
def recordings() -> dict[str, np.ndarray]:
    return {"one": noise(10, 1), "two": noise(10, 2)}


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_segments_give_the_shards_of_the_same_samples_in_files(tmp_path, recordings, suffix):
    build(write_cut(tmp_path / "files", recordings), tmp_path / "cache-files")
    report = build(write_nemo(tmp_path / "nemo", recordings, suffix), tmp_path / "cache")
    assert not report.rejected
    assert shards(tmp_path / "cache") == shards(tmp_path / "cache-files")
    assert verify_cache(tmp_path / "cache", threads=1) == []


def test_kaldi_and_lhotse_give_the_same_clips_as_nemo(tmp_path, recordings):
    nemo = read_corpus(write_nemo(tmp_path / "nemo", recordings)).clips
    kaldi, lhotse = tmp_path / "kaldi", tmp_path / "lhotse"
    for folder in (kaldi, lhotse):
        shutil.copytree(tmp_path / "nemo", folder)
        (folder / "manifest.jsonl").unlink()
    (kaldi / "wav.scp").write_text("r1 one.wav\nr2 two.wav\n")
    files = {"one.wav": "r1", "two.wav": "r2"}
    ends = [(clip, (clip.start or 0) + (clip.duration or 0)) for clip in nemo]
    (kaldi / "segments").write_text("".join(f"{c.id} {files[c.source]} {c.start} {end}\n" for c, end in ends))
    (kaldi / "text").write_text("".join(f"{clip.id} {clip.text}\n" for clip in nemo))
    recording = {"sampling_rate": RATE, "num_samples": 10 * RATE, "duration": 10.0}
    (lhotse / "cuts.jsonl").write_text("".join(
        json.dumps({
            "id": clip.id, "type": "MonoCut", "channel": 0, "start": clip.start, "duration": clip.duration,
            "recording": {"sources": [{"type": "file", "channels": [0], "source": clip.source}], **recording},
            "supervisions": [{"id": clip.id, "start": 0, "duration": clip.duration, "text": clip.text}],
        }) + "\n"
        for clip in nemo
    ))  # fmt: skip
    assert read_corpus(kaldi).clips == nemo
    assert read_corpus(lhotse).clips == nemo


def test_the_ledger_says_where_a_segment_lies_and_an_index_without_segments_does_not(tmp_path, recordings):
    import pyarrow.parquet as pq

    build(write_nemo(tmp_path / "nemo", recordings), tmp_path / "cache")
    rows = {row.clip.id: row for row in read_index(index_path(tmp_path / "cache"))}
    assert [(rows[f"one{i}"].clip.start, rows[f"one{i}"].clip.duration) for i in range(len(SPANS))] == SPANS
    assert all(row.audio and row.audio.seconds == pytest.approx(row.clip.duration, abs=1e-4) for row in rows.values())
    build(write_cut(tmp_path / "files", recordings), tmp_path / "cache-files")
    names = pq.read_schema(index_path(tmp_path / "cache-files")).names
    assert not {"start", "duration", "member", "source_offset"} & set(names)


def test_without_ids_segments_are_called_like_their_file_and_times(tmp_path):
    soundfile.write(tmp_path / "talk.wav", noise(3), RATE)
    entries = [{"audio_filepath": "talk.wav", "text": "x", "offset": at, "duration": 1.25} for at in (0, 1.5)]
    (tmp_path / "manifest.json").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert [clip.id for clip in read_corpus(tmp_path).clips] == ["talk_0-1250", "talk_1500-2750"]


def rewritten(data: Path, cache: Path, change: Callable[[], None]) -> set[str]:
    """The clips whose shards were written again after `change`, which must be those whose shards differ."""
    build(data, cache)
    before = {file: path.stat().st_ino for file in shards(cache) for path in [cache / file]}
    change()
    build(data, cache)
    assert verify_cache(cache, threads=1) == []
    changed = {file for file in shards(cache) if (cache / file).stat().st_ino != before.get(file)}
    places = {(row.place.split, row.place.bucket, row.place.shard): row for row in read_index(index_path(cache))
              if isinstance(row, Kept)}  # fmt: skip
    assert places
    spec = load_spec(cache)
    files = {file.file for bucket in spec.buckets for file in (*bucket.train, *bucket.validation)}
    assert changed <= files
    return changed


@pytest.fixture
def many_shards(monkeypatch) -> None:
    """A shard for nearly every clip."""
    monkeypatch.setattr("xtts.precompute.build.shard_plan._SMALLEST_TARGET_BYTES", 1)
    monkeypatch.setattr("xtts.precompute.build.shard_plan._ENOUGH_SHARDS", 1000)


def shard_of(cache: Path, clip_id: str) -> str:
    (row,) = (row for row in read_index(index_path(cache)) if row.clip.id == clip_id)
    assert isinstance(row, Kept)
    spec = load_spec(cache)
    bucket = spec.buckets[row.place.bucket]
    listed = bucket.train if row.place.split == "train" else bucket.validation
    return next(file.file for file in listed if f"shard-{row.place.shard:05}-" in file.file)


def test_samples_changed_in_one_segment_rewrite_its_shard_alone(tmp_path, recordings, many_shards):
    data, cache = write_nemo(tmp_path / "nemo", recordings), tmp_path / "cache"

    def change() -> None:
        samples = recordings["one"].copy()
        samples[round(3.5 * RATE)] += 1000  # in the third segment
        soundfile.write(data / "one.wav", np.concatenate([samples, noise(1)]), RATE)

    changed = rewritten(data, cache, change)
    assert len(shards(cache)) > 4
    assert changed == {shard_of(cache, "one2")}


def test_moved_boundaries_rewrite_the_shard_of_their_clip(tmp_path, recordings, many_shards):
    data, cache = write_nemo(tmp_path / "nemo", recordings), tmp_path / "cache"
    manifest = data / "manifest.jsonl"

    def change() -> None:
        manifest.write_text(manifest.read_text().replace('"offset": 5.125', '"offset": 5.25', 1))

    assert rewritten(data, cache, change) == {shard_of(cache, "one3")}


def test_a_touched_recording_rewrites_nothing(tmp_path, recordings):
    data, cache = write_nemo(tmp_path / "nemo", recordings), tmp_path / "cache"
    assert rewritten(data, cache, lambda: soundfile.write(data / "one.wav", recordings["one"], RATE)) == set()


def test_a_segment_beyond_its_recording_is_a_row_of_the_ledger(tmp_path, recordings):
    data = write_nemo(tmp_path / "nemo", recordings)
    soundfile.write(data / "two.wav", recordings["two"][: round(8.5 * RATE)], RATE)
    report = build_cache(
        data, tmp_path / "cache", config("shapes.max_reject_fraction=0.5"), workers=0, progress=NullProgress()
    )
    assert report.rejected == {"unreadable audio": 1}
    (row,) = (row for row in read_index(index_path(tmp_path / "cache")) if isinstance(row, Rejected))
    assert row.rejection.detail == "a segment of 1 s from 8 s on, of 8.5 s"


def test_a_cache_of_segments_is_checked_against_its_corpus(tmp_path, recordings):
    data, cache = write_nemo(tmp_path / "nemo", recordings), tmp_path / "cache"
    build(data, cache)
    request = cache_request(cache, load_spec(cache), data, workers=0)
    assert check_corpus(cache, request) == []
    assert check_features(cache, request, clips=None) == []
    samples = recordings["two"].copy()
    samples[0] += 1
    soundfile.write(data / "two.wav", samples, RATE)
    assert [(finding.where, finding.found) for finding in check_corpus(cache, request)] == [
        ("two.wav (two0)", "audio changed")
    ]
