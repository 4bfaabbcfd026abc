"""Folders that the processes of the tests make once and share."""

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def made_once(name):
    """A folder that all processes of the tests share, and whether it is empty: others wait while one fills it."""
    folder = Path(os.environ["LOCKSTEP_TESTS"], name)
    folder.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, not any(folder.iterdir())
