"""Freed memory stays in the process: what is allocated again is not faulted in again."""

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
