"""Disks of a build: folders to which its workers write, on any machine; disk errors and lack of space."""

import errno
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from xtts.precompute.workers.stopping import CONTINUE
from xtts.shared.errors import LockstepError


def attempt_path(path: Path) -> Path:
    """Return a path beside `path` that no other attempt at the same task has, not even one presumed dead.

    Raises a `LockstepError` if this process does not see the folder: its machine does not share it, or the build has
    ended.
    """
    check_visible(path.parent)
    return path.with_name(f"{uuid4().hex[:12]}-{path.name}")


def check_visible(folder: Path) -> None:
    """Raise a `LockstepError` if this process does not see a folder of the build."""
    if not folder.is_dir():
        raise LockstepError(
            str(folder), found=f"not visible from {socket.gethostname()}",
            expected="a folder that every machine shares",
            fix=f"mount it there at the same path, and {CONTINUE}", exit_code=1,
        )


def beside(folder: Path) -> Path:
    """Return the nearest existing parent of a folder, for files that must not be inside: machines share both."""
    return next(parent for parent in folder.absolute().parents if parent.is_dir())


@contextmanager
def disk_errors_explained(cache: Path) -> Iterator[None]:
    """Turn an `OSError` of a full or failing disk into a `LockstepError`."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        fix = f"free some space and {CONTINUE}" if is_full else CONTINUE
        problem = f"cannot be read or written ({os.strerror(error.errno) if error.errno else error})"
        raise LockstepError(str(error.filename or cache), found=problem, fix=fix, exit_code=1) from None


def check_free_space(cache: Path, wanted_bytes: int) -> None:
    """Raise a `LockstepError`, before anything is written, if the new shards do not fit on the disk."""
    free_bytes = shutil.disk_usage(cache).free
    if wanted_bytes > free_bytes:
        problem, expected = f"{free_bytes / 2**20:.0f} MiB free", f"{wanted_bytes / 2**20:.0f} MiB for the new shards"
        fix = "choose another disk for --cache"
        raise LockstepError(str(cache), found=problem, expected=expected, fix=fix, exit_code=1)
