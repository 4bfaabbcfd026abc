"""A command is gone soon after its last line."""

import subprocess
import sys

import pytest

PROGRAM = """
class Garbage:
    def __init__(self):
        self.itself = self
    def __del__(self):
        print("collected")

import gc
from xtts.trainer.system.tensorflow_import import end_at_once
gc.disable()
Garbage()
"""


@pytest.mark.parametrize(("last", "printed"), [("", "collected\n"), ("end_at_once()", "")])
def test_no_garbage_is_collected_at_the_end(last, printed):
    found = subprocess.run([sys.executable, "-c", PROGRAM + last], capture_output=True, text=True, check=True)
    assert found.stdout == printed
