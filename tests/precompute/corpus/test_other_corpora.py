"""Formats beside wav, speakers, and JSON-lines manifests."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile
from cache_files import index_path

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.check.verify import verify_cache
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.view.terminal import build_summary
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import IndexRow, Kept, Rejected, notes_of, read_index
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError


def noise(seconds: float = 1.0, rate: int = 22_050) -> np.ndarray:
    return 0.1 * np.random.default_rng(0).standard_normal(int(seconds * rate))


def build(data: Path, cache: Path, **flags: object) -> dict[str, IndexRow]:
    build_cache(data, cache, load_config("tiny", flags=flags), workers=0, progress=NullProgress())
    assert verify_cache(cache, threads=1) == []
    return {row.clip.id: row for row in read_index(index_path(cache))}


def test_wav_flac_ogg_and_mp3_beside_each_other(tmp_path):
    wavs = tmp_path / "corpus" / "wavs"
    wavs.mkdir(parents=True)
    for name, rate in (("a.wav", 22_050), ("b.flac", 44_100), ("c.ogg", 22_050), ("d.mp3", 48_000), ("a.flac", 22_050)):
        soundfile.write(wavs / name, noise(1.0, rate), rate)
    (tmp_path / "corpus" / "metadata.csv").write_text("a|one\nb|two\nc|three\nd|four\n")
    rows = build(tmp_path / "corpus", tmp_path / "cache", **{"shapes.max_reject_fraction": 0.0})
    assert {row.clip.source for row in rows.values()} == {"wavs/a.wav", "wavs/b.flac", "wavs/c.ogg", "wavs/d.mp3"}
    assert {row.audio.mel_length for row in rows.values()} == {86}
    assert notes_of(rows["d"]) == "no normalised column; resampled from 48000 Hz"


def test_a_speaker_column_gives_ids(tmp_path):
    wavs = tmp_path / "corpus" / "wavs"
    wavs.mkdir(parents=True)
    for name in "abcd":
        soundfile.write(wavs / f"{name}.wav", noise(), 22_050)
    (tmp_path / "corpus" / "metadata.csv").write_text("a|x||zoe\nb|y||ann\nc|z|zed|zoe\nd|w||bob\n")
    rows = build(tmp_path / "corpus", tmp_path / "cache")
    spec = load_spec(tmp_path / "cache")
    assert spec.speakers == ["ann", "bob", "zoe"]
    assert {name: row.clip.speaker for name, row in rows.items()} == {"a": "zoe", "b": "ann", "c": "zoe", "d": "bob"}
    for bucket in spec.buckets:
        for shard in (*bucket.train, *bucket.validation):
            for _, record in read_shard(tmp_path / "cache" / shard.file, spec, bucket):
                assert spec.speakers[record.speaker] == rows[record.clip_id].clip.speaker


def test_some_clips_without_a_speaker_are_a_mistake(tmp_path):
    (tmp_path / "metadata.csv").write_text("a|x||zoe\nb|y\n")
    with pytest.raises(LockstepError, match="no speaker for clip b, but for others, expected a speaker for every clip"):
        read_corpus(tmp_path)


def manifest(path: Path, *entries: object) -> Path:
    path.write_text("\n".join(e if isinstance(e, str) else json.dumps(e) for e in entries) + "\n")
    return path


def test_a_manifest_with_relative_and_absolute_paths(tmp_path):
    (tmp_path / "corpus" / "deep").mkdir(parents=True)
    for path in ("corpus/deep/a.wav", "corpus/b.flac", "away.wav"):
        soundfile.write(tmp_path / path, noise(), 22_050)
    data = manifest(
        tmp_path / "corpus" / "train.jsonl",
        {"audio_filepath": "deep/a.wav", "text": "first", "duration": 1.0, "speaker": "ann", "lang": "en"},
        {"audio_filepath": str(tmp_path / "corpus" / "b.flac"), "text": "second", "speaker": 7},
        {"audio_filepath": str(tmp_path / "away.wav"), "text": "third", "id": "far", "speaker": "ann"},
    )
    rows = build(data, tmp_path / "cache")
    assert {name: row.clip.source for name, row in rows.items()} == {
        "a": "deep/a.wav",
        "b": "b.flac",
        "far": str(tmp_path / "away.wav"),
    }
    assert load_spec(tmp_path / "cache").speakers == ["7", "ann"]
    assert all(isinstance(row, Kept) for row in rows.values())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("not json", r"m\.jsonl:2: not JSON"),
        ("[1, 2]", r"m\.jsonl:2: not a JSON object"),
        ("[" * 100_000, r"m\.jsonl:2: not JSON"),
        ({"text": "x"}, r"m\.jsonl:2: audio_filepath is None, expected a string"),
        ({"audio_filepath": "b.wav", "text": 3}, r"m\.jsonl:2: text is 3, expected a string"),
        ({"audio_filepath": "b.wav", "text": "x", "offset": 2.5}, r"m\.jsonl:2: duration is None, expected a number"),
        ({"audio_filepath": "b.wav", "text": "x", "offset": True, "duration": 1}, r"m\.jsonl:2: offset is True"),
        ({"audio_filepath": "b.wav", "text": "x", "offset": "0", "duration": 1}, r"m\.jsonl:2: offset is '0'"),
        ({"audio_filepath": "b.wav", "text": "x", "offset": 0, "duration": -1}, r"m\.jsonl:2: a segment of -1 s"),
        ({"audio_filepath": "b.wav", "text": "x", "offset": 0, "duration": 0}, r"m\.jsonl:2: a segment of 0 s"),
        (
            {"audio_filepath": "b.wav", "text": "x", "offset": 1e308, "duration": 1},
            r"m\.jsonl:2: a segment of 1 s from",
        ),
        ({"audio_filepath": "b.wav", "text": "x", "offset": 10**400, "duration": 1}, r"m\.jsonl:2: offset is 1000"),
        ({"audio_filepath": "b.wav", "text": "x", "offset": float("nan"), "duration": 1}, r"m\.jsonl:2: offset is nan"),
        ({"audio_filepath": "b.wav", "text": "x", "id": "../b"}, r"m\.jsonl:2: clip id '\.\./b' reads as a path"),
        ({"audio_filepath": "b.wav", "text": "x", "speaker": "a\nb"}, r"m\.jsonl:2: speaker .* control characters"),
        ({"audio_filepath": "b\0.wav", "text": "x", "id": "b"}, r"m\.jsonl:2: characters that are no text"),
        ('{"audio_filepath": "b.wav", "text": "\\ud800"}', r"m\.jsonl:2: characters that are no text"),
        ('{"audio_filepath": "b.wav", "text": "x", "id": "\\udc00"}', r"m\.jsonl:2: clip id .* no text"),
    ],
)
def test_unusable_manifest_lines_are_named(tmp_path, entry, message):
    data = manifest(tmp_path / "m.jsonl", {"audio_filepath": "a.wav", "text": "fine"}, entry)
    with pytest.raises(LockstepError, match=message):
        read_corpus(data)


def test_repeated_names_in_a_manifest_are_for_the_ledger(tmp_path):
    entries = [{"audio_filepath": f"{folder}/a.wav", "text": "x"} for folder in "pq"]
    clips = read_corpus(manifest(tmp_path / "m.jsonl", *entries)).clips
    assert [clip.duplicate for clip in clips] == [False, True]


def test_pipes_and_devices_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    soundfile.write(tmp_path / "a.wav", noise(), 22_050)
    files = ("a.wav", "pipe.wav", "/dev/zero", "/etc/hostname")
    data = manifest(tmp_path / "m.jsonl", *({"audio_filepath": file, "text": "words"} for file in files))
    rows = build(data, tmp_path / "cache", **{"shapes.max_reject_fraction": 0.9})
    assert set(rows) == {"a", "pipe", "zero", "hostname"}
    reasons = {name: row.rejection.reason for name, row in rows.items() if isinstance(row, Rejected)}
    assert reasons == {"pipe": "missing audio", "zero": "missing audio", "hostname": "unreadable audio"}


def test_numbers_become_words_only_without_a_normalised_column(tmp_path):
    wavs = tmp_path / "corpus" / "wavs"
    wavs.mkdir(parents=True)
    for name in "abc":
        soundfile.write(wavs / f"{name}.wav", noise(2.0), 22_050)
    metadata = tmp_path / "corpus" / "metadata.csv"
    metadata.write_text("a|Dr. No has 12 boats\nb|no 5|no 5 b\nc|none\n")
    config, cache = load_config("tiny"), tmp_path / "cache"
    report = build_cache(tmp_path / "corpus", cache, config, workers=0, progress=NullProgress())
    rows = {row.clip.id: row for row in read_index(index_path(cache))}
    assert [rows[name].clip.text for name in "abc"] == ["Doctor No has twelve boats", "no 5 b", "none"]
    assert [notes_of(rows[name]) for name in "abc"] == ["no normalised column", "", "no normalised column"]
    assert "2 texts have no normalised column: their numbers are put into words" in build_summary(report, "cache")
    metadata.write_text("a|Dr. No has 12 boats\nb|no 5\nc|none|none\n")
    rows = build(tmp_path / "corpus", cache)
    assert [rows[name].clip.text for name in "abc"] == ["Doctor No has twelve boats", "no five", "none"]
    assert [notes_of(rows[name]) for name in "abc"] == ["no normalised column", "no normalised column", ""]
    assert verify_cache(cache, threads=1) == []
    rows = build(tmp_path / "corpus", cache, **{"text.expand_numbers": False})
    assert [rows[name].clip.text for name in "abc"] == ["Dr. No has 12 boats", "no 5", "none"]
