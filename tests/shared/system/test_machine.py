"""Memory of a process: what is freed stays in it, and its peak is recorded."""

import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from xtts.shared.system.machine import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def work():
    parts = [np.ones(16 << 20, np.uint8) for _ in range(4)]
    del parts
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is of glibc")
def test_freed_blocks_are_reused():
    runs = ([sys.executable, "-c", FAULTS, what] for what in ("keep", "leave"))
    keep, leave = (int(subprocess.run(run, capture_output=True, check=True).stdout) for run in runs)
    assert keep < 1000 < leave


USED_ONCE = """
import numpy as np
from xtts.shared.system.machine import peak_resident_bytes
size = (before := peak_resident_bytes()) + 2**26
assert before > 2**20
assert np.ones(size, np.uint8).all()
assert peak_resident_bytes() > size
"""


def test_peak_memory_keeps_counting_freed_memory():
    """Runs in a child of a small process: a child inherits the peak of its parent, which is gigabytes in the tests."""
    command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", USED_ONCE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
