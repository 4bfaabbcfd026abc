"""What `make train` does first: the commands are stand-ins that record how they were called."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> calls
case "$*" in
  sample-corpus*) mkdir -p sample-corpus && touch sample-corpus/metadata.csv;;
  build*) for word; do [ "$last" = --cache ] && mkdir -p "$word" && touch "$word/cache.json"; last=$word; done;;
esac
"""
MAKE_SAMPLE = "xtts-precompute sample-corpus sample-corpus --clips 160 --seed 0"
SAMPLE = (
    "xtts-precompute build --data sample-corpus --cache sample-corpus-features --config tiny --set shapes.buckets=2"
)
TRAIN_SAMPLE = "xtts-train --config tiny --set shapes.buckets=2 --cache sample-corpus-features --resume --steps 300"
BUILD = "xtts-precompute build --data {} --cache features --config tiny"
TRAIN = "xtts-train --config tiny --cache features --resume"


@pytest.fixture
def make(tmp_path):
    """`make("train", "DATA=x")`: (the commands that were called, what make printed)."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in (".ready", ".ready-dev"):
        (tmp_path / ".venv" / name).touch()
    for name in ("xtts-precompute", "xtts-train", "xtts-synth"):
        path = tmp_path / ".venv" / "bin" / name
        path.write_text(STAND_IN)
        path.chmod(0o755)

    def run(*arguments):
        (tmp_path / "calls").write_text("")
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "TEST"))}
        result = subprocess.run(["make", *arguments], cwd=tmp_path, env=own, capture_output=True, text=True)
        return (tmp_path / "calls").read_text().splitlines(), result.stdout

    return run


def test_from_nothing_train_speaks_a_corpus_builds_and_trains(make):
    assert make("train")[0] == [MAKE_SAMPLE, SAMPLE, TRAIN_SAMPLE]
    assert make("train")[0] == [TRAIN_SAMPLE]
    assert make("features")[0] == [SAMPLE]


def test_the_cache_of_a_corpus_is_used_and_not_filled_with_the_sample(make, tmp_path):
    (tmp_path / "features" / ".building").mkdir(parents=True)
    refusal = "error: features is the cache of a corpus; fix: the same command with DATA=that corpus\n"
    assert make("train") == ([], refusal)
    assert make("features", "DATA=.")[0] == [BUILD.format(".")]
    assert make("train")[0] == [TRAIN]
    assert make("features") == ([], refusal)


def test_with_data_train_brings_the_cache_up_to_date_first(make, tmp_path):
    corpus = "my recordings"
    (tmp_path / corpus).mkdir()
    own = BUILD.format(corpus)
    assert make("train", f"DATA={corpus}")[0] == [own, TRAIN]
    assert make("train", f"DATA={corpus}")[0] == [own, TRAIN]
    train = "xtts-train --config normal --config gpu/rtx4090 --cache features --resume --steps 9"
    assert make("train", "CONFIG=normal", "GPU=rtx4090", "TRAIN_ARGS=--steps 9")[0] == [train]


def test_what_speaks_is_the_newest_run_or_what_is_named(make):
    assert make("app")[0] == ["xtts-synth serve --open"]
    assert make("synth", "CKPT=other", "TEXT=Hello.")[0] == ["xtts-synth --ckpt other -o out.wav -- Hello."]


def test_the_two_suites_differ_in_their_marker_alone_and_are_all_tests(make, request):
    quick, long = (shlex.split(make("-n", target)[1].partition(" || ")[0]) for target in ("test", "test-long"))
    assert quick[:3] == [".venv/bin/python", "-m", "pytest"]
    assert quick[:-2] == long[:-2]
    assert (quick[-2:], long[-2:]) == (["-m", "not long"], ["-m", "long"])
    assert not {"-m", "-k", "--ignore", "--deselect"} & {*quick[3:-2], *request.config.getini("addopts")}


def test_training_installs_no_tools_of_the_developers_and_tests_do(make, tmp_path):
    (tmp_path / ".venv" / ".ready-dev").unlink()

    def installed(target):
        return re.findall(r"--editable '\.\[(.*)\]'", make("-n", "-W", "pyproject.toml", target)[1])

    extras = installed("train")
    assert len(extras) == 1
    assert "phonemes" in extras[0]
    assert not {"dev", "ray"} & {*extras[0].split(",")}
    for target in ("test", "check", "bench"):
        assert installed(target) == [*extras, "dev"], target
