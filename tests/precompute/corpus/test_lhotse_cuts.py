"""Lhotse cut manifests, packed by gzip or not."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from builds import read_corpus, write_files

from xtts.shared.errors import LockstepError


def cut(name: str, source: str, text: str, **changes: Any) -> dict[str, Any]:
    """A line of cuts.jsonl."""
    entry = {
        "id": name, "start": 0, "duration": 1.0, "channel": 0, "type": "MonoCut", "custom": {"shape": [1]},
        "supervisions": [{"id": name, "start": 0.0, "text": text, "language": "English", "speaker": "ann"}],
        "recording": {"sources": [{"type": "file", "channels": [0], "source": source}], "duration": 1.0},
    }  # fmt: skip
    if changes.get("recording"):
        changes["recording"] = {**entry["recording"], **changes["recording"]}
    return {**entry, **changes}


def write(path: Path, *entries: dict[str, Any]) -> Path:
    data = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["cuts.jsonl", "cuts.jsonl.gz"])
def test_cuts_of_whole_and_partial_recordings_are_clips(tmp_path, name):
    write_files(tmp_path, {"a.wav": "", "b.wav": ""})
    second = cut("two", str(tmp_path / "b.wav"), "second", duration=0.9999)
    third = cut("three", "a.wav", "third", start=0.25, duration=0.5)
    path = write(tmp_path / name, cut("one", "a.wav", "first"), second, third)
    assert read_corpus(path) == read_corpus(path.parent)
    assert [(c.id, c.speaker, c.text, c.source, c.start, c.duration) for c in read_corpus(path).clips] == [
        ("one", "ann", "first", "a.wav", None, None), ("two", "ann", "second", "b.wav", None, None),
        ("three", "ann", "third", "a.wav", 0.25, 0.5),
    ]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), [
    ({"duration": float("nan")}, "duration is nan, expected a number of seconds"),
    ({"supervisions": 7}, "supervisions are 7, expected a list of objects"),
    ({"id": ["a"]}, r"id is \['a'\], expected a string"),
    ({"supervisions": cut("a", "a.wav", "x")["supervisions"] * 2}, "2 supervisions, expected one"),
    ({"recording": {"sources": [{"type": "file", "channels": [0, 1], "source": "a.wav"}]}},
     r"channels are \[0, 1\], expected one channel"),
    ({"type": "MixedCut"}, "a cut of type 'MixedCut', expected MonoCut"),
    ({"recording": None}, "a cut without a recording"),
    ({"recording": {"sources": [{"type": "command", "channels": [0], "source": "rm x"}]}},
     "a recording that is not one file"),
    ({"recording": {"transforms": [{"name": "Speed"}]}}, "a recording with transforms"),
])  # fmt: skip
def test_cuts_of_anything_but_one_plain_file_are_rejected(tmp_path, changes, message):
    with pytest.raises(LockstepError, match=message):
        read_corpus(write(tmp_path / "cuts.jsonl", cut("a", "a.wav", "x", **changes)))


@pytest.mark.parametrize(("data", "found"), [
    (gzip.compress(b"x" * 99, mtime=0)[:-9], "cannot be unpacked"),
    (b"no gzip", "cannot be unpacked"),
    (gzip.compress(bytes(2**25), mtime=0), "a line that is longer, expected at most 16,777,216 bytes"),
])  # fmt: skip
def test_a_broken_gzip_file_or_endless_line_is_rejected(tmp_path, data, found):
    (tmp_path / "cuts.jsonl.gz").write_bytes(data)
    with pytest.raises(LockstepError, match=rf"cuts\.jsonl\.gz.*{found}"):
        read_corpus(tmp_path / "cuts.jsonl.gz")
