"""Freed memory stays in the process: what is allocated again is not faulted in again."""

import ctypes
import subprocess
import sys

import pytest

from xtts.shared.system.malloc import keep_freed_memory

FAULTS = """
import resource, sys
import numpy as np
from xtts.shared.system.malloc import keep_freed_memory
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
def test_freed_blocks_are_used_again():
    runs = ([sys.executable, "-c", FAULTS, what] for what in ("keep", "leave"))
    keep, leave = (int(subprocess.run(run, capture_output=True, check=True).stdout) for run in runs)
    assert keep < 1000 < leave


def test_without_a_c_library_of_its_own_nothing_is_tuned(monkeypatch):
    asked = []

    def no_library(name):
        asked.append(name)
        raise TypeError(f"argument of type {name!r}")  # as on Windows

    monkeypatch.setattr(ctypes, "CDLL", no_library)
    assert keep_freed_memory() is None
    assert asked == [None]
