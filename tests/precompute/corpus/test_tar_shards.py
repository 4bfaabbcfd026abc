"""Corpora in tar files: their contents, and what is refused."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from builds import build, read_corpus, rejected, sound, write_tar

from xtts.shared.errors import LockstepError


def said(text: str, **more: Any) -> bytes:
    return json.dumps({"text": text, **more}).encode()


def tar_of(path: Path, *names: str) -> Path:
    return write_tar(path, *((name, b"some words") for name in names))


def test_webdataset_reads_texts_from_txt_and_json_members(tmp_path):
    write_tar(
        tmp_path / "A.TAR",
        ("one.wav", b"1"), ("one.json", said("first", speaker=7, language="en-US", dnsmos=3.5)),
        ("two.flac", b"2"), ("two.json", said("the json", speaker="bob")), ("two.TXT", b"second\n"),
        ("p/three.ogg", b"3"), ("p/three.normalized.txt", b"third"),
        ("p/three.json", said("3rd", speaker="bob")),
        ("four.mp3", b"4"), ("four.json", json.dumps({"_id": "x", "transcript": "t", "lang": "en",
                                                      "speaker_id": "ann"}).encode()),
        ("readme.md", b"hello"), ("cover.png", b"\x89PNG"), ("./._a.wav", b""), ("b/.hidden.wav", b""),
    )
    clips = read_corpus(tmp_path).clips
    assert [(clip.id, clip.speaker, clip.text, clip.language, clip.normalised) for clip in clips] == [
        ("one", "7", "first", "en", False), ("two", "bob", "second", "", False), ("three", "bob", "third", "", True),
        ("x", "ann", "t", "en", False),
    ]
    assert read_corpus(tmp_path / "A.TAR").clips == clips


def test_equal_keys_in_two_tar_files_get_different_ids(tmp_path):
    for name, clip in (("a", "1"), ("b", "1"), ("c", "2")):
        tar_of(tmp_path / f"{name}.tar", f"{clip}.wav", f"{clip}.txt")
    assert [clip.id for clip in read_corpus(tmp_path).clips] == ["a_1", "b_1", "2"]


def test_members_without_text_or_audio_are_rejected_in_the_index(tmp_path):
    members = [("a.wav", sound()), ("a.txt", b"some words"), ("b.wav", sound()), ("c.txt", b"no sound"),
               ("d.wav", b"no sound"), ("d.txt", b"x"), ("e.wav", b""), ("e.txt", b"x")]
    write_tar(tmp_path / "data/a.tar", *members)
    build(tmp_path / "data", tmp_path / "cache", "shapes.max_reject_fraction=0.9")
    assert rejected(tmp_path / "cache") == {
        "b": "empty text", "c": "missing audio", "d": "unreadable audio", "e": "empty audio"
    }


@pytest.mark.parametrize(("members", "message"), [
    ([("a.wav", b"x"), ("a.wav", b"y")], r"'a\.wav' beside 'a\.wav', expected one of them"),
    ([("a.wav", b"x"), ("a.json", b"[" * 100_000)], r"'a\.json': not JSON"),
    ([("a.wav", b"x"), ("a.json", said("x", id="../a"))], "clip id '../a' reads as a path"),
    ([("a.wav", b"x"), ("a.txt", b"\xff")], r"'a\.txt': not UTF-8"),
    ([("lj/metadata.csv", b""), ("lj/wavs/a.wav", b"")], r"audio without texts of the same .*: tar -xf a\.tar"),
    ([("readme", b"x")], "no clips, expected KEY.wav with KEY.json"),
])
def test_invalid_members_are_rejected(tmp_path, members, message):
    with pytest.raises(LockstepError, match=message):
        read_corpus(write_tar(tmp_path / "a.tar", *members))


def test_compressed_tar_files_are_rejected_with_a_fix(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(LockstepError, match=r"a\.tar\.gz: compressed, expected an unpacked corpus, .*tar -xf a"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("archive", ["x.tar", "x.tar.gz"])
def test_audio_beside_a_tar_file_is_an_ambiguous_layout(tmp_path, archive):
    tar_of(tmp_path / archive, "a.wav", "a.txt")
    (tmp_path / "b.wav").write_bytes(b"")
    (tmp_path / "b.txt").write_text("other words", encoding="utf-8")
    with pytest.raises(LockstepError, match="files of 2 layouts: webdataset and folder"):
        read_corpus(tmp_path)
    assert [clip.id for clip in read_corpus(tmp_path, layout="folder").clips] == ["b"]
