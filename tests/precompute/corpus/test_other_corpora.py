"""Formats beside wav, speakers, and JSON-lines manifests."""

import json

import pytest
from small_corpora import build, rows_of, sound, write_files

from xtts.precompute.check.verify import verify_cache
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.view.terminal import build_summary
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import notes_of
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.errors import LockstepError


def test_formats_beside_each_other_and_the_ids_of_speakers(tmp_path):
    rates = {"a.wav": 22_050, "b.flac": 44_100, "c.ogg": 22_050, "d.mp3": 48_000, "a.flac": 22_050}
    files = {f"wavs/{name}": sound(rate=rate, kind=name[2:].upper()) for name, rate in rates.items()}
    lines = "a|x||zoe\nb|y||ann\nc|z|zed|zoe\nd|w||bob\n"
    cache = tmp_path / "cache"
    build(write_files(tmp_path / "corpus", {**files, "metadata.csv": lines}), cache, "shapes.max_reject_fraction=0")
    assert verify_cache(cache, threads=1) == []
    rows = rows_of(cache)
    assert {row.clip.source for row in rows.values()} == {"wavs/a.wav", "wavs/b.flac", "wavs/c.ogg", "wavs/d.mp3"}
    assert {row.audio.mel_length for row in rows.values()} == {86}
    assert notes_of(rows["d"]) == "no normalised column; resampled from 48000 Hz"
    spec = load_spec(cache)
    assert spec.speakers == ["ann", "bob", "zoe"]
    (bucket,) = spec.buckets
    records = (record for shard in (*bucket.train, *bucket.validation)
               for _, record in read_shard(cache / shard.file, spec, bucket))  # fmt: skip
    assert {record.clip_id: spec.speakers[record.speaker] for record in records} == {
        "a": "zoe", "b": "ann", "c": "zoe", "d": "bob"
    }  # fmt: skip


def test_some_clips_without_a_speaker_are_a_mistake(tmp_path):
    write_files(tmp_path, {"metadata.csv": "a|x||zoe\nb|y\n"})
    with pytest.raises(LockstepError, match="no speaker for clip b, but for others, expected a speaker for every clip"):
        read_corpus(tmp_path)


def test_a_manifest_with_relative_and_absolute_paths(tmp_path):
    write_files(tmp_path, {"corpus/deep/a.wav": b"", "corpus/b.flac": b"", "away.wav": b""})
    entries = [
        {"audio_filepath": "deep/a.wav", "text": "first", "duration": 1.0, "speaker": "ann", "lang": "en"},
        {"audio_filepath": str(tmp_path / "corpus" / "b.flac"), "text": "second", "speaker": 7},
        {"audio_filepath": str(tmp_path / "away.wav"), "text": "third", "id": 3, "speaker": "ann"},
        {"audio_filepath": "c/b.wav", "text": "fourth", "speaker": "ann"},
    ]
    write_files(tmp_path, {"corpus/train.jsonl": "\n".join(map(json.dumps, entries))})
    clips = read_corpus(tmp_path / "corpus/train.jsonl").clips
    assert [(clip.id, clip.source, clip.speaker, clip.duplicate) for clip in clips] == [
        ("a", "deep/a.wav", "ann", False), ("b", "b.flac", "7", False),
        ("3", str(tmp_path / "away.wav"), "ann", False), ("b", "c/b.wav", "ann", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("not json", r"m\.jsonl:2: not JSON"),
        ("[1, 2]", r"m\.jsonl:2: not a JSON object"),
        ("[" * 100_000, r"m\.jsonl:2: not JSON"),
        ({"audio_filepath": None}, r"m\.jsonl:2: audio_filepath is None, expected a string"),
        ({"text": 3}, r"m\.jsonl:2: text is 3, expected a string"),
        ({"offset": 2.5}, r"m\.jsonl:2: duration is None, expected a number"),
        ({"offset": True, "duration": 1}, r"m\.jsonl:2: offset is True"),
        ({"offset": "0", "duration": 1}, r"m\.jsonl:2: offset is '0'"),
        ({"offset": 0, "duration": -1}, r"m\.jsonl:2: a segment of -1 s"),
        ({"offset": 0, "duration": 0}, r"m\.jsonl:2: a segment of 0 s"),
        ({"offset": 1e308, "duration": 1}, r"m\.jsonl:2: a segment of 1 s from"),
        ({"offset": 10**400, "duration": 1}, r"m\.jsonl:2: offset is 1000"),
        ({"offset": float("nan"), "duration": 1}, r"m\.jsonl:2: offset is nan"),
        ({"id": "../b"}, r"m\.jsonl:2: clip id '\.\./b' reads as a path"),
        ({"speaker": "a\nb"}, r"m\.jsonl:2: speaker .* control characters"),
        ({"audio_filepath": "b\0.wav", "id": "b"}, r"m\.jsonl:2: characters that are no text"),
        ({"text": "\ud800"}, r"m\.jsonl:2: characters that are no text"),
        ({"id": "\udc00"}, r"m\.jsonl:2: clip id .* no text"),
    ],
)
def test_unusable_manifest_lines_are_named(tmp_path, entry, message):
    line = entry if isinstance(entry, str) else json.dumps({"audio_filepath": "b.wav", "text": "x", **entry})
    write_files(tmp_path, {"m.jsonl": '{"audio_filepath": "a.wav", "text": "fine"}\n' + line})
    with pytest.raises(LockstepError, match=message):
        read_corpus(tmp_path / "m.jsonl")


def test_numbers_become_words_only_without_a_normalised_column(tmp_path):
    data, cache = tmp_path / "corpus", tmp_path / "cache"
    write_files(data, {f"wavs/{name}.wav": sound(2.0) for name in "abc"})
    for metadata, texts, normalised in (
        ("a|Dr. No has 12 boats\nb|no 5|no 5 b\nc|none\n", ["Doctor No has twelve boats", "no 5 b", "none"], "b"),
        ("a|Dr. No has 12 boats\nb|no 5\nc|none|none\n", ["Doctor No has twelve boats", "no five", "none"], "c"),
    ):
        report = build(write_files(data, {"metadata.csv": metadata}), cache)
        rows = rows_of(cache)
        assert [rows[name].clip.text for name in "abc"] == texts
        assert {name for name in "abc" if notes_of(rows[name]) != "no normalised column"} == {normalised}
        assert "2 texts have no normalised column: their numbers are put into words" in build_summary(report, "cache")
        assert verify_cache(cache, threads=1) == []
    build(data, cache, "text.expand_numbers=False")
    assert [rows_of(cache)[name].clip.text for name in "abc"] == ["Dr. No has 12 boats", "no 5", "none"]
