"""Stopping a build: signals, disk errors and lack of disk space."""

import errno
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from xtts.shared.errors import LockstepError

CONTINUE = "run the same command again to continue: what is finished is kept"


class Stopped(BaseException):
    """A signal, the argument, told the process to end."""


@contextmanager
def stoppable(cache: Path | str) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a `LockstepError` that says how to continue (main thread only)."""

    def stop(signum: int, _: FrameType | None) -> None:
        raise Stopped(signal.Signals(signum))

    handlers = {signum: signal.signal(signum, stop) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Stopped as stopped:
        (signum,) = stopped.args
        problem = f"stopped by {signum.name}"
        raise LockstepError(str(cache), found=problem, fix=CONTINUE, exit_code=128 + signum) from None
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)


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
