"""One process per folder, by a lock that ends with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xtts.shared.errors import LockstepError


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold an advisory lock on the folder itself: nothing to clean up after a crash, nothing left in the cache."""
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
