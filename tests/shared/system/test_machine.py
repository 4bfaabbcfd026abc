"""Memory of a process: what is freed stays in it, and its peak is recorded."""

import subprocess
import sys

import pytest

from xtts.shared.system.machine import peak_resident_bytes

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


def test_peak_memory_is_in_bytes():
    assert 2**26 < peak_resident_bytes() < 2**36
    assert peak_resident_bytes(workers=2) >= peak_resident_bytes()
