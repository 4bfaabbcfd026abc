"""What `make train` does first: the commands are stand-ins that record how they were called."""

import os
import shutil
import subprocess
from pathlib import Path

STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> calls
case "$*" in
  sample-corpus*) mkdir -p sample-corpus && touch sample-corpus/metadata.csv;;
  build*) mkdir -p sample-corpus-features && touch sample-corpus-features/cache.json;;
esac
"""


def test_train_speaks_a_sample_but_never_into_the_cache_of_a_corpus(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / ".ready").touch()
    for name in ("xtts-precompute", "xtts-train"):
        (tmp_path / ".venv" / "bin" / name).write_text(STAND_IN)
        (tmp_path / ".venv" / "bin" / name).chmod(0o755)

    def make(*words):
        (tmp_path / "calls").write_text("")
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "TEST"))}
        done = subprocess.run(["make", *words], cwd=tmp_path, env=own, capture_output=True, text=True)
        return (tmp_path / "calls").read_text().splitlines() or done.stdout

    speak, build, train = make("train")
    assert speak == "xtts-precompute sample-corpus sample-corpus --clips 160 --seed 0"
    assert build.startswith("xtts-precompute build --data sample-corpus --cache sample-corpus-features --config tiny")
    assert "--cache sample-corpus-features --resume --steps 300" in train
    assert make("train") == [train]
    (tmp_path / "features" / ".building").mkdir(parents=True)
    assert make("train") == "error: features is the cache of a corpus; fix: the same command with DATA=that corpus\n"
    own = "xtts-precompute build --data my recordings --cache features --config tiny"
    assert make("train", "DATA=my recordings") == [own, "xtts-train --config tiny --cache features --resume"]
