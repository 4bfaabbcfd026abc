"""Rejected clips, of which no digest is stored, in files that were touched or rewritten."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import soundfile
from builds import Listener, build, problems

from xtts.precompute.build.build_cache import explain_build
from xtts.precompute.build.build_request import make_request
from xtts.shared.config_files import load_config

RATE = 22_050
CONFIG = load_config("tiny", flags={"shapes.max_reject_fraction": 0.9, "data.filters.max_letters_per_second": 10.0})


def sound(seed: int, level: float = 0.1) -> bytes:
    out = io.BytesIO()
    soundfile.write(out, level * np.random.default_rng(seed).standard_normal(RATE), RATE, format="WAV")
    return out.getvalue()


def write_tar(path: Path, sounds: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in sounds.items():
            words = b"too many words for one second" if name.startswith("fast") else b"words"
            for member, content in ((f"{name}.wav", data), (f"{name}.txt", words)):
                header = tarfile.TarInfo(member)
                header.size = len(content)
                tar.addfile(header, io.BytesIO(content))


def findings(data: Path, cache: Path) -> list[tuple[str, str]]:
    return [(finding.where, finding.found) for finding in problems(cache, data)]


def test_a_rewritten_tar_file_does_not_make_its_rejected_clips_changed(tmp_path):
    data, cache = tmp_path / "a.tar", tmp_path / "cache"
    sounds = {name: sound(seed) for seed, name in enumerate(("a", "b", "fast1", "fast2"))}
    write_tar(data, sounds)
    build(data, cache, CONFIG)
    write_tar(data, {"c": sound(9), **sounds, "b": sound(1, 0.2)})
    assert findings(data, cache) == [
        ("a.tar (c)", "added to the corpus"), ("a.tar (b)", "audio changed")
    ]  # fmt: skip
    said = Listener()
    explain_build(make_request(data, cache, CONFIG, workers=0), said)
    assert said.lines[:2] == ["1 clip added (c)", "1 clip with other audio (b)"]


def test_a_rejected_file_is_changed_when_its_size_is(tmp_path):
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    for name, text in (("a", "words"), ("b", "too many words for one second")):
        (data / f"{name}.wav").write_bytes(sound(0))
        (data / f"{name}.txt").write_text(text, encoding="utf-8")
    build(data, cache, CONFIG)
    os.utime(data / "b.wav", (1, 1))
    assert findings(data, cache) == []
    (data / "b.wav").write_bytes(sound(0)[:-2])
    assert findings(data, cache) == [("b.wav (b)", "audio changed")]
    (data / "b.wav").unlink()
    assert findings(data, cache) == [("b.wav (b)", "audio missing")]
