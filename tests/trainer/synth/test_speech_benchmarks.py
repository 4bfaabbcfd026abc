"""The benchmark of speech runs on a small run, and says what it measured."""

import json
from pathlib import Path

import forked_program
import matplotlib.image
import pytest

pytestmark = pytest.mark.long
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_the_held_out_sentences_become_a_table_and_a_picture(finished_run, tmp_path):
    picture, figures = tmp_path / "docs" / "held-out.png", tmp_path / "figures.json"
    command = [BENCHMARKS / "speech.py", finished_run[0], "--picture", picture, "--out", figures]
    done = forked_program.run(command)
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert (found["size"], found["step"], found["sentences"]) == ("tiny", 12, found["recordings"])
    assert found["step_seconds"] > 0
    row = next(line for line in done.stdout.splitlines() if line.startswith("| synthesised |"))
    spoken = found["systems"]["synthesised"]
    assert f"| {spoken['relative_mcd']:.3f} | {spoken['frechet_distance']:.2f} |" in row
    assert picture.stat().st_size < 150_000
    height, width = matplotlib.image.imread(picture).shape[:2]
    assert width > height > 300
