"""Options of synthesis are checked where they are made, whatever the way in."""

import math
from dataclasses import replace

import numpy as np
import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.evaluation.synthesis_ranges import NUMBERS, WHOLE_NUMBERS
from xtts.trainer.synth import evaluate_checkpoint, load_voice


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 5, "solver": "midpoint"}, "--steps: 5 with --solver midpoint, expected a multiple of 2"),
        ({"steps": 0, "solver": "euler"}, "--steps: 0 with --solver euler, expected a multiple of 1"),
        ({"steps": 1002}, "--steps: 1002, expected a whole number, 1 to 1000"),
        ({"steps": 2.5}, "--steps: 2.5, expected a whole number, 1 to 1000"),
        ({"solver": "rk45"}, "--solver: 'rk45', expected euler or midpoint"),
        ({"temperature": -0.1}, "--temperature: -0.1, expected 0 to 2"),
        ({"temperature": math.inf}, "--temperature: inf, expected 0 to 2"),
        ({"temperature": -5}, "--temperature: -5, expected 0 to 2"),
        ({"temperature": "warm"}, "--temperature: 'warm', expected 0 to 2"),
        ({"speed": 0}, "--speed: 0, expected 0.25 to 4"),
        ({"speed": None}, "--speed: None, expected 0.25 to 4"),
        ({"seed": -1}, "--seed: -1, expected a whole number, 0 to 2147483647"),
        ({"seed": 10**400}, f"--seed: 1{'0' * 39}, expected a whole number, 0 to 2147483647"),
        ({"seconds": -2}, "--seconds: -2, expected 0.01 to 3600"),
        ({"seconds": math.nan}, "--seconds: nan, expected 0.01 to 3600"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(options, message):
    for make in (SynthesisOptions, lambda **given: replace(SynthesisOptions(), **given)):
        with pytest.raises(LockstepError) as caught:
            make(**options)
        assert str(caught.value).partition(";")[0].startswith(message)


def test_the_ends_of_the_ranges_and_numbers_of_numpy_can_be():
    for name, ends in (WHOLE_NUMBERS | NUMBERS).items():
        for end in ends:
            SynthesisOptions(**{"solver": "euler", name: end})
    SynthesisOptions(steps=np.int64(2), speed=np.float32(1.5), seconds=3)


def test_python_programs_are_told_before_anything_is_read(tmp_path):
    with pytest.raises(LockstepError, match=r"--speed: 0, expected 0\.25 to 4"):
        load_voice(tmp_path / "no-run", speed=0)
    with pytest.raises(LockstepError, match="--temperature: -5, expected 0 to 2"):
        evaluate_checkpoint(tmp_path / "no-run", temperature=-5)
