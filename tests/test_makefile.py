"""What `make train` does first: the commands are stand-ins that write down how they were called."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> calls
case "$*" in
  sample-corpus*) mkdir -p sample-corpus && touch sample-corpus/metadata.csv;;
  build*) mkdir -p features && echo "$*" > features/cache.json;;
esac
"""
SAMPLE = "xtts-precompute build --data sample-corpus --cache features --config tiny"
TRAIN = "xtts-train --config tiny --cache features --resume"


@pytest.fixture
def make(tmp_path):
    """`make("train", "DATA=x")`: (the commands that were called, what make printed)."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / ".ready").touch()
    for name in ("xtts-precompute", "xtts-train"):
        path = tmp_path / ".venv" / "bin" / name
        path.write_text(STAND_IN)
        path.chmod(0o755)

    def run(*arguments):
        (tmp_path / "calls").unlink(missing_ok=True)
        result = subprocess.run(["make", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        calls = tmp_path / "calls"
        return calls.read_text().splitlines() if calls.exists() else [], result.stdout

    return run


def test_from_nothing_train_speaks_a_corpus_builds_and_trains(make):
    assert make("train")[0] == ["xtts-precompute sample-corpus sample-corpus --clips 1250 --seed 0", SAMPLE, TRAIN]
    assert make("train")[0] == [SAMPLE, TRAIN]  # brought up to date each time


@pytest.mark.parametrize("corpus", ["LJSpeech-1.1", "my recordings"])
def test_train_keeps_to_the_corpus_that_features_was_built_of(make, tmp_path, corpus):
    (tmp_path / corpus).mkdir()
    own = SAMPLE.replace("sample-corpus", corpus)
    assert make("features", f"DATA={corpus}")[0] == [own]
    assert make("train")[0] == [own, TRAIN]
    assert make("train", "CONFIG=normal")[0] == [own.replace("tiny", "normal"), TRAIN.replace("tiny", "normal")]
    (tmp_path / "features" / "cache.json").unlink()  # a build that was interrupted goes on
    assert make("train")[0] == [own, TRAIN]
    (tmp_path / corpus).rename(tmp_path / "moved")
    calls, screen = make("train")
    assert calls == [TRAIN]
    assert f"features: its corpus {corpus} is gone; training on it as it is" in screen


def test_train_with_a_corpus_builds_of_it(make, tmp_path):
    (tmp_path / "mine").mkdir()
    assert make("train")[0][-1] == TRAIN
    assert make("train", "DATA=mine")[0] == [SAMPLE.replace("sample-corpus", "mine"), TRAIN]
    assert make("train")[0] == [SAMPLE.replace("sample-corpus", "mine"), TRAIN]


def test_a_cache_that_make_did_not_build_is_left_alone(make, tmp_path):
    make("train")
    (tmp_path / "features" / "cache.json").write_text("by xtts-precompute build\n")
    for _ in range(2):
        calls, screen = make("train")
        assert calls == [TRAIN]
        assert "features: not built by make features; training on it as it is" in screen
        (tmp_path / "features.corpus").unlink(missing_ok=True)


def test_an_overlay_for_a_gpu(make):
    call = make("train", "GPU=rtx4090", "CONFIG=normal", "TRAIN_ARGS=--steps 9")[0][-1]
    assert call == "xtts-train --config normal --config gpu/rtx4090 --cache features --resume --steps 9"
