"""Clips that are segments of longer recordings: their samples, their rows in the index, and what a change rewrites."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from builds import RATE, build, noise, problems, read_corpus, rows_of, shard_of, shards, write_files
from tables import cases

from xtts.precompute.corpus.listing import read_corpus as read_corpus_of
from xtts.shared.cache.clip_index import clips_of
from xtts.shared.errors import LockstepError

CASES = cases(__file__)

SPANS = [(0.0, 1.5), (1.5, 1.25), (3.0, 2.0), (5.125, 0.75), (6.5, 1.5), (8.0, 1.0)]
"""Start and duration of the segments of a recording of ten seconds."""


def write_nemo(root: Path, recordings: dict[str, np.ndarray], suffix: str = "wav") -> Path:
    root.mkdir(exist_ok=True)
    entries = []
    for name, samples in recordings.items():
        soundfile.write(root / f"{name}.{suffix}", samples, RATE)
        entries += [
            {"id": f"{name}{number}", "audio_filepath": f"{name}.{suffix}", "offset": start, "duration": duration,
             "text": f"clip {'abcdefgh'[number]} of {name}"}
            for number, (start, duration) in enumerate(SPANS)
        ]
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


@pytest.fixture
def recordings() -> dict[str, np.ndarray]:
    return {name: (30_000 * noise(10, seed=seed)).astype(np.int16) for seed, name in enumerate(("one", "two"))}


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_segments_and_files_of_equal_samples_give_equal_shards(tmp_path, recordings, suffix):
    build(write_cut(tmp_path / "files", recordings), tmp_path / "cache-files")
    report = build(write_nemo(tmp_path / "nemo", recordings, suffix), tmp_path / "cache")
    assert not report.rejected
    assert shards(tmp_path / "cache") == shards(tmp_path / "cache-files")
    assert problems(tmp_path / "cache") == []
    rows = rows_of(tmp_path / "cache")
    assert [(rows[f"one{i}"].clip.start, rows[f"one{i}"].clip.duration) for i in range(len(SPANS))] == SPANS
    assert all(row.seconds == pytest.approx(row.clip.duration, abs=1e-4) for row in rows.values())
    assert {row.clip.start for row in rows_of(tmp_path / "cache-files").values()} == {None}


def test_kaldi_segments_give_the_same_clips_as_nemo(tmp_path, recordings):
    nemo = read_corpus(write_nemo(tmp_path / "nemo", recordings)).clips
    kaldi = shutil.copytree(tmp_path / "nemo", tmp_path / "kaldi")
    (kaldi / "manifest.jsonl").unlink()
    (kaldi / "wav.scp").write_text("r1 one.wav\nr2 two.wav\n")
    files = {"one.wav": "r1", "two.wav": "r2"}
    ends = [(clip, (clip.start or 0) + (clip.duration or 0)) for clip in nemo]
    (kaldi / "segments").write_text("".join(f"{c.id} {files[c.source]} {c.start} {end}\n" for c, end in ends))
    (kaldi / "text").write_text("".join(f"{clip.id} {clip.text}\n" for clip in nemo))
    assert read_corpus(kaldi).clips == nemo


@pytest.mark.parametrize(("change", "clip"), CASES["changes"])
def test_a_changed_segment_rewrites_only_its_shard(tmp_path, recordings, change, clip):
    data, cache, small = write_nemo(tmp_path / "nemo", recordings), tmp_path / "cache", "shapes.buckets=8"
    build(data, cache, small)
    before, held = shards(cache), {shard_of(cache, clip)} if clip else set()
    if change == "boundaries of one segment":
        listed = (data / "manifest.jsonl").read_text()
        (data / "manifest.jsonl").write_text(listed.replace('"offset": 5.125', '"offset": 5.25', 1))
    else:
        samples = recordings["one"].copy()
        samples[round(3.5 * RATE)] += 1000 if clip else 0  # in the third segment
        soundfile.write(data / "one.wav", np.concatenate([samples, samples[: RATE if clip else 0]]), RATE)
    report = build(data, cache, small)
    assert report.written_shards == len(held)
    assert before.keys() - shards(cache).keys() == held
    assert len(before) > 4
    assert problems(cache) == []


@pytest.mark.parametrize(("name", "text"), CASES["subtitles"])
def test_labels_and_subtitles_are_read_as_segments(tmp_path, name, text):
    clips = read_corpus(write_files(tmp_path, {"a.wav": b"", name: text})).clips
    assert [(clip.text, clip.source, clip.start) for clip in clips] == [
        ("Good morning.", "a.wav", 0.0), ("The book lies on the table.", "a.wav", 2.0), ("The end.", "a.wav", 3605.0)
    ]
    assert [(clip.id, clip.duration) for clip in clips[:2]] == [("a_0-2000", 2.0), ("a_2000-3605000", 3603.0)]


@pytest.mark.parametrize(("name", "text", "texts", "count", "first"), CASES["without speech"])
def test_segments_without_speech_or_length_are_passed_over_and_counted(tmp_path, name, text, texts, count, first):
    corpus = read_corpus_of(write_files(tmp_path, {"talk.wav": b"", name: text}))
    assert [clip.text for clip in clips_of(corpus.clips)] == texts
    note = f"{tmp_path}: {count} skipped, without speech or of 0 s, such as {first!r}"
    assert corpus.notes == ((note,) if count else ())


def test_a_file_of_points_is_refused_with_what_was_passed_over(tmp_path):
    write_files(tmp_path, {"talk.wav": b"", "talk.txt": "1.5\t1.5\tone\n2.0\t2.0\ttwo\n"})
    message = r"no clips, expected ID.wav with ID.txt beside it; .*: 2 segments skipped, without speech or of 0 s"
    with pytest.raises(LockstepError, match=message):
        read_corpus(tmp_path)


def test_other_transcripts_with_times_are_refused_or_doubtful(tmp_path):
    whisper = write_files(tmp_path / "whisper", {"a.wav": b"", "a.txt": "[00:00.000 --> 00:02.000]  Hello.\n"})
    assert read_corpus(whisper).clips[0].doubt.startswith("time: ")
    clock = write_files(tmp_path / "clock", {"a.wav": b"", "a.txt": "0:00\nGood morning.\n0:02\nThe book.\n"})
    with pytest.raises(LockstepError, match=r"a\.txt:1: a transcript with clock times, expected subtitles"):
        read_corpus(clock)
