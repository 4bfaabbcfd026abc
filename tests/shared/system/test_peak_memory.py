"""Peak memory of a process."""

import subprocess
import sys

USED_ONCE = """
import numpy as np
from xtts.shared.system.machine import peak_resident_bytes

before = peak_resident_bytes()
assert before > 2**20
size = before + 2**26
assert np.ones(size, np.uint8).all()
assert peak_resident_bytes() > size
"""


def test_peak_memory_keeps_counting_freed_memory():
    """Runs in a child of a small process: a child inherits the peak of its parent, which is gigabytes in the tests."""
    command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", USED_ONCE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
