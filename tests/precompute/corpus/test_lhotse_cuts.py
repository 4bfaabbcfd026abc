"""Lhotse cut manifests, as lhotse writes them and by hand."""

import gzip
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from cache_files import index_path

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.check.verify import verify_cache
from xtts.precompute.corpus import text_lines
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

RATE = 22_050


def cut(name: str, source: str, text: str, **changes: Any) -> dict[str, Any]:
    """A line of cuts.jsonl."""
    entry = {
        "id": name, "start": 0, "duration": 1.0, "channel": 0, "type": "MonoCut", "custom": {"shape": [1]},
        "supervisions": [{"id": name, "recording_id": name, "start": 0.0, "duration": 1.0, "channel": 0,
                          "text": text, "language": "English", "speaker": "ann"}],
        "recording": {"id": name, "sources": [{"type": "file", "channels": [0], "source": source}],
                      "sampling_rate": RATE, "num_samples": RATE, "duration": 1.0, "channel_ids": [0]},
    }  # fmt: skip
    changed = changes.pop("recording", {})
    return {**entry, "recording": {**entry["recording"], **changed}, **changes}  # type: ignore[dict-item]


def write(path: Path, *entries: dict[str, Any]) -> Path:
    data = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def record(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        soundfile.write(folder / name, 0.1 * np.random.default_rng(0).standard_normal(RATE), RATE)


@pytest.mark.parametrize("name", ["cuts.jsonl", "cuts.jsonl.gz"])
def test_whole_recordings_are_clips(tmp_path, name):
    record(tmp_path / "corpus", "a.wav", "b.wav")
    path = write(
        tmp_path / "corpus" / name,
        cut("one", "a.wav", "first of 2"),
        cut("two", str(tmp_path / "corpus" / "b.wav"), "second", duration=0.9999),
    )
    assert read_corpus(path) == read_corpus(path.parent)
    cache = tmp_path / "cache"
    build_cache(path.parent, cache, load_config("tiny"), workers=0, progress=NullProgress())
    assert verify_cache(cache, threads=1) == []
    assert load_spec(cache).speakers == ["ann"]
    rows = read_index(index_path(cache))
    assert [(row.clip.id, row.clip.source, row.clip.text) for row in rows] == [
        ("one", "a.wav", "first of two"), ("two", "b.wav", "second"),
    ]  # fmt: skip


def test_a_manifest_that_lhotse_wrote(tmp_path):
    lhotse = pytest.importorskip("lhotse")
    record(tmp_path / "corpus", "a.wav")
    recording = lhotse.Recording.from_file(tmp_path / "corpus" / "a.wav")
    segment = lhotse.SupervisionSegment(
        id="s", recording_id=recording.id, start=0.0, duration=recording.duration, text="some words", speaker="ann"
    )
    whole = recording.to_cut()
    whole.supervisions = [segment]
    path = tmp_path / "corpus" / "cuts.jsonl.gz"
    lhotse.CutSet.from_cuts([whole]).to_file(path)
    clips = read_corpus(path).clips
    assert [(clip.id, clip.text, clip.speaker, clip.source) for clip in clips] == [
        (whole.id, "some words", "ann", "a.wav")
    ]
    lhotse.CutSet.from_cuts([whole.truncate(offset=0.2, duration=0.5)]).to_file(path)
    assert [(clip.start, clip.duration) for clip in read_corpus(path).clips] == [(0.2, 0.5)]


def test_a_slice_is_a_segment(tmp_path):
    record(tmp_path, "a.wav")
    (clip,) = read_corpus(write(tmp_path / "cuts.jsonl", cut("a", "a.wav", "x", start=0.25, duration=0.5))).clips
    assert (clip.id, clip.text, clip.source, clip.start, clip.duration) == ("a", "x", "a.wav", 0.25, 0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": -0.5}, r"cuts\.jsonl:1: a segment of 1 s from -0\.5 s on, expected a start from 0"),
        ({"duration": 0}, r"cuts\.jsonl:1: a segment of 0 s from 0 s on"),
        ({"duration": float("nan")}, "duration is nan, expected a number of seconds"),
        ({"duration": "long"}, "duration is 'long', expected a number of seconds"),
        ({"recording": {"duration": None}}, "duration is None, expected a number of seconds"),
        ({"supervisions": [{"text": 7}]}, "text is 7, expected a string"),
        ({"supervisions": 7}, "supervisions are 7, expected a list of objects"),
        ({"id": ["a"]}, r"id is \['a'\], expected a string"),
        ({"supervisions": cut("a", "a.wav", "x")["supervisions"] * 2}, "2 supervisions, expected one"),
        ({"recording": {"sources": [{"type": "file", "channels": [0, 1], "source": "a.wav"}]}},
         r"channels are \[0, 1\], expected one channel"),
        ({"recording": {"sources": [{"type": "file", "channels": 1, "source": "a.wav"}]}}, "channels are 1, expected"),
        ({"id": "../a"}, "clip id '../a' reads as a path"),
    ],
)  # fmt: skip
def test_other_cuts_are_refused(tmp_path, changes, message):
    with pytest.raises(LockstepError, match=message):
        read_corpus(write(tmp_path / "cuts.jsonl", cut("a", "a.wav", "x", **changes)))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (cut("a", "a.wav", "x", type="MixedCut"), "a cut of type 'MixedCut', expected MonoCut"),
        ({"id": "a", "start": 0, "duration": 1, "type": "MonoCut"}, "a cut without a recording"),
        (cut("a", "", "x", recording={"sources": [{"type": "command", "channels": [0], "source": "rm x"}]}),
         "a recording that is not one file"),
        (cut("a", "a.wav", "x", recording={"transforms": [{"name": "Speed"}]}), "a recording with transforms"),
    ],
)  # fmt: skip
def test_what_would_be_executed_fetched_or_mixed_is_refused(tmp_path, entry, message):
    with pytest.raises(LockstepError, match=message):
        read_corpus(write(tmp_path / "cuts.jsonl", entry))


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"no gzip", lambda data: data[:12] + b"\xff" * 9]
)
def test_a_broken_gzip_file(tmp_path, damage):
    path = write(tmp_path / "cuts.jsonl.gz", cut("a", "a.wav", "x"))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(LockstepError, match=r"cuts\.jsonl\.gz: cannot be unpacked"):
        read_corpus(path)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (bytes(2**25), "a line that is longer, expected at most 16,777,216 bytes"),
        (b"\n" * 2**24, "unpacks to more than 100 times its size"),
        (b'{"id": "a"}\n' * 2**20, "unpacks to more than 100 times its size"),
    ],
)
def test_a_gzip_file_that_unpacks_to_too_much(tmp_path, data, found):
    (tmp_path / "cuts.jsonl.gz").write_bytes(gzip.compress(data))
    with pytest.raises(LockstepError, match=found):
        sum(1 for _ in text_lines.read_lines(tmp_path / "cuts.jsonl.gz"))


def test_a_packed_manifest_of_more_than_a_gibibyte_is_read_line_by_line(tmp_path):
    """It was refused, after a gibibyte of it had been unpacked into memory."""
    names = random.Random(0)
    lines = ("".join(f"{names.getrandbits(256):064x}" * 64 for _ in range(16)) for _ in range(128))
    member = gzip.compress("\n".join([*lines, ""]).encode())  # 8 MiB; members of a gzip file follow each other
    with (tmp_path / "cuts.jsonl.gz").open("wb") as file:
        for _ in range(130):
            file.write(member)
    tracemalloc.start()
    lengths = {len(line) for line in text_lines.read_lines(tmp_path / "cuts.jsonl.gz")}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lengths == {2**16}
    assert peak < 2**22
