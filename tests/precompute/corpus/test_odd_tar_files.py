"""Tar files and their manifests as they come from elsewhere: odd names, hidden members, numbers that say too little."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from xtts.precompute.corpus.listing import read_corpus
from xtts.shared.errors import LockstepError


def tar_of(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name in names:
            header = tarfile.TarInfo(name)
            header.size = 10
            tar.addfile(header, io.BytesIO(b"some words"))
    return path


def nemo(folder: Path, **entry: Any) -> Path:
    line = {"audio_filepath": "a.wav", "text": "some words", **entry}
    (folder / "manifest.json").write_text(json.dumps(line), encoding="utf-8")
    return folder


@pytest.mark.parametrize("number", [[], {}, "0", 0.0, True, None, 7])
def test_a_shard_id_that_is_no_number_of_a_tar_file_is_refused(tmp_path, number):
    for tar in ("audio_0.tar", "audio_1.tar"):
        tar_of(tmp_path / tar, "a.wav")
    with pytest.raises(LockstepError, match=r"manifest\.json:1: shard_id is .*, expected the number of one of 2"):
        read_corpus(nemo(tmp_path, shard_id=number))


def test_two_tar_files_of_one_number_are_refused(tmp_path):
    for tar in ("bucket1/audio_0.tar", "bucket2/audio_0.tar"):
        tar_of(tmp_path / tar, "a.wav")
    with pytest.raises(LockstepError, match=r"bucket1/audio_0\.tar and bucket2/audio_0\.tar for shard_id 0"):
        read_corpus(nemo(tmp_path, shard_id=0))


@pytest.mark.parametrize(("member", "listed"), [("./a.wav", "a.wav"), ("a.wav", "./a.wav")])
def test_a_leading_dot_does_not_hide_a_member(tmp_path, member, listed):
    tar_of(tmp_path / "audio_0.tar", member)
    (clip,) = read_corpus(nemo(tmp_path, audio_filepath=listed, shard_id=0)).clips
    assert (clip.id, clip.member) == ("a", "512+10")


def test_hidden_members_are_left_out(tmp_path):
    tar_of(tmp_path / "x.tar", "./._a.wav", "./a.wav", "./._a.txt", "./a.txt", "b/.hidden.wav")
    (clip,) = read_corpus(tmp_path).clips
    assert (clip.id, clip.text) == ("a", "some words")


def test_a_tar_file_is_found_by_its_suffix_in_capitals(tmp_path):
    tar_of(tmp_path / "X.TAR", "a.wav", "a.txt")
    assert [clip.source for clip in read_corpus(tmp_path).clips] == ["X.TAR"]


@pytest.mark.parametrize("archive", ["x.tar", "x.tar.gz"])
def test_audio_beside_a_tar_file_is_not_silently_left_out(tmp_path, archive):
    tar_of(tmp_path / archive, "a.wav", "a.txt")
    (tmp_path / "b.wav").write_bytes(b"")
    (tmp_path / "b.txt").write_text("other words", encoding="utf-8")
    with pytest.raises(LockstepError, match="files of 2 layouts: webdataset and folder"):
        read_corpus(tmp_path)
    assert [clip.id for clip in read_corpus(tmp_path, layout="folder").clips] == ["b"]
