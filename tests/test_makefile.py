"""What `make train` does first: the commands are stand-ins that write down how they were called."""

import os
import shlex
import shutil
import subprocess
import sys
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
    for name in ("xtts-precompute", "xtts-train", "xtts-synth"):
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


def test_train_with_another_corpus_builds_of_it(make, tmp_path):
    (tmp_path / "mine").mkdir()
    make("train")
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


def test_the_app_serves_the_newest_run(make, tmp_path):
    for seconds, name in enumerate(("old", "new")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").touch()
        os.utime(tmp_path / "runs" / name / "run.json", (seconds, seconds))
    assert make("app", "APP_ARGS=--port 0")[0] == ["xtts-synth serve --ckpt runs/new --open --port 0"]


def test_the_two_suites_differ_in_their_marker_alone_and_are_all_tests(make, request):
    quick, long = (shlex.split(make("-n", target)[1].partition(" || ")[0]) for target in ("test", "test-long"))
    assert quick[:3] == [".venv/bin/python", "-m", "pytest"]
    assert quick[:-2] == long[:-2]
    assert (quick[-2:], long[-2:]) == (["-m", "not long"], ["-m", "long"])
    assert not {"-m", "-k", "--ignore", "--deselect"} & {*quick[3:-2], *request.config.getini("addopts")}


PYTHON_WITHOUT_PIP = """#!/bin/sh
case "$*" in
  "-m venv .venv") mkdir -p .venv/bin .venv/lib/python3.11/site-packages && cp "$0" .venv/bin/python;;
  "-c import sysconfig"*) echo .venv/lib/python3.11/site-packages;;
esac
"""
FINDER = """
import sys
from importlib.util import spec_from_file_location

class _EditableFinder:  # in the manner of setuptools
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "xtts.shared":
            return spec_from_file_location(name, "shared/__init__.py", submodule_search_locations=["shared"])

sys.meta_path.append(_EditableFinder)
"""
IMPORT = """
import site, sys
site.addsitedir(".venv/lib/python3.11/site-packages")
import xtts.shared.errors
print(xtts.shared.errors.__file__)
"""


@pytest.mark.parametrize(("before", "found"), [("", ".venv/links/xtts/shared/errors.py"), (FINDER, "shared/errors.py")])
def test_the_environment_links_the_packages_and_python_keeps_to_the_tree(tmp_path, before, found):
    """A reader of folders follows the links; where the editable install has a finder, modules have the tree's path."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shared").mkdir()
    for name in ("__init__.py", "errors.py"):
        (tmp_path / "shared" / name).touch()
    stand_in = tmp_path / "python3"
    stand_in.write_text(PYTHON_WITHOUT_PIP)
    stand_in.chmod(0o755)
    made = subprocess.run(
        ["make", ".venv/.ready", f"PYTHON={stand_in}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    code = before + IMPORT
    run = [sys.executable, "-I", "-S", "-c", code]
    result = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / result.stdout.strip()) == tmp_path / found
