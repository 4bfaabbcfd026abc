"""Forked programs end with the tests, however these end."""

import os
import subprocess
import sys
from pathlib import Path

PARENT = """
import sys, time
import forked_program
forked_program.SERVER.set_forkserver_preload([])  # without TensorFlow
program = "import time; print('at work', flush=True); time.sleep(30); print('still at work')"
forked = forked_program.Forked(["-c", program], sys.argv[1])
time.sleep(60)
"""


def test_a_forked_program_ends_when_its_parent_is_killed(tmp_path):
    os.mkfifo(tmp_path / "screen")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, tmp_path / "screen"], cwd=Path(__file__).parent)
    with open(tmp_path / "screen") as screen:
        assert screen.readline() == "at work\n"
        parent.kill()
        assert screen.read() == "", "read until nobody can write any more"
    parent.wait()
