"""Rejected clips, of which no digest is stored, in files that were touched or rewritten."""

import os
import re
from pathlib import Path

from builds import Listener, build, problems, sound, write_files, write_tar

from xtts.precompute.pipeline.build_cache import explain_build
from xtts.precompute.pipeline.build_request import make_request
from xtts.precompute.workers.worker_pool import ThisProcess
from xtts.shared.config_files import load_config

CONFIG = load_config("tiny", flags={"shapes.max_reject_fraction": 0.9, "data.filters.max_letters_per_second": 10.0})
FAST = b"too many words for one second"


def members(**sounds: bytes) -> list[tuple[str, bytes]]:
    texts = {name: FAST if name.startswith("fast") else b"words" for name in sounds}
    return [pair for name in sounds for pair in ((f"{name}.wav", sounds[name]), (f"{name}.txt", texts[name]))]


def findings(data: Path, cache: Path) -> list[tuple[str, str]]:
    """Without places in archives."""
    return [(re.sub(r"/\d+\+\d+", "", finding.location), finding.found) for finding in problems(cache, data)]


def test_rejected_clips_of_a_rewritten_tar_file_are_unchanged(tmp_path):
    data, cache = tmp_path / "a.tar", tmp_path / "cache"
    sounds = {name: sound(seed=seed) for seed, name in enumerate(("a", "b", "fast1", "fast2"))}
    write_tar(data, *members(**sounds))
    build(data, cache, CONFIG)
    write_tar(data, *members(c=sound(seed=9), **{**sounds, "b": sound(seed=8)}))
    assert findings(data, cache) == [("a.tar (c)", "added to the corpus"), ("a.tar (b)", "audio changed")]
    said = Listener()
    explain_build(make_request(data, cache, CONFIG), ThisProcess(), said)
    assert said.lines[1:3] == ["1 clip added (c)", "1 clip with changed audio (b)"]


def test_a_rejected_file_is_changed_when_its_size_is(tmp_path):
    data, cache = tmp_path / "data", tmp_path / "cache"
    write_files(data, {"a.wav": sound(), "a.txt": "words", "b.wav": sound(), "b.txt": FAST})
    build(data, cache, CONFIG)
    os.utime(data / "b.wav", (1, 1))
    assert findings(data, cache) == []
    (data / "b.wav").write_bytes(sound()[:-2])
    assert findings(data, cache) == [("b.wav (b)", "audio changed")]
    (data / "b.wav").unlink()
    assert findings(data, cache) == [("b.wav (b)", "audio missing")]
