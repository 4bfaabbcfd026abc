"""The proofs of speech run on a small run, and say what they measured."""

import json
import os
from pathlib import Path

import forked_program
import matplotlib.image
import pytest

pytestmark = pytest.mark.long
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
DEAF_RECOGNISER = """
class Decoder:
    def __init__(self, *, samprate, cmn, loglevel):
        assert (samprate, cmn) == (16000, "batch")
    def start_utt(self): pass
    def process_raw(self, data, full_utt): self.seconds = len(data) / 2 / 16000
    def end_utt(self): pass
    def hyp(self): return type("Hypothesis", (), {"hypstr": "d"})() if self.seconds > 0.1 else None
"""


def test_a_small_run_is_spoken_back_and_heard(finished_run, tiny_corpus, tmp_path):
    (tmp_path / "pocketsphinx.py").write_text(DEAF_RECOGNISER)
    arguments = [tiny_corpus, "--run", finished_run[0], "--out", tmp_path / "f.json", "--heard", tmp_path / "played"]
    done = forked_program.run([BENCHMARKS / "overtrain.py", *arguments], env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "f.json").read_text())
    assert result["step"] == 12
    heard = json.loads((tmp_path / "played" / "heard.json").read_text())
    assert list(heard) == ["synthesised", "vocoded recording", "recording"]
    for clips in heard.values():
        assert len(clips) == result["clips"]
        # Each text begins with the one letter that is ever heard: all the other characters are missing.
        assert all(one["errors"] == len(one["text"]) - 1 for one in clips if one["heard"])
    assert all(one["heard"] == "d" for one in heard["recording"])
    assert result["character_error_percent"]["recording"] == result["character_error_percent"]["vocoded recording"]
    assert result["figures"]["vocoded recording"]["retrieval_at_1"] == 1.0
    assert len(list((tmp_path / "played" / "synthesised").glob("*.wav"))) == result["clips"]
    assert "points beyond vocoded" in done.stdout


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
