"""One process per folder, by a lock that ends with its process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xtts.shared.errors import LockstepError


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold an advisory lock on the folder itself: nothing to clean up after a crash, nothing left in the cache."""
    try:
        import fcntl
    except ImportError:
        raise LockstepError(
            str(folder), found="no way to lock a folder (this Python has no fcntl, as on Windows)",
            expected="Linux, macOS or WSL2", fix="on Windows, run the same command in WSL2",
        ) from None  # fmt: skip
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fix = "wait for it to end, or stop it"
            raise LockstepError(str(folder), found="another process is at work in this folder", fix=fix) from None
        yield
    finally:
        os.close(descriptor)
