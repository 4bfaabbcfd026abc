"""Stopping a build from outside, and the ways in which the machine may stop it."""

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
    """A signal, the argument, asked the process to end."""


@contextmanager
def stoppable(cache: Path | str) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a clean end that says how to continue (main thread only)."""

    def stop(number: int, _: FrameType | None) -> None:
        raise Stopped(signal.Signals(number))

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Stopped as stopped:
        (number,) = stopped.args
        found = f"stopped by {number.name}"
        raise LockstepError(str(cache), found=found, fix=CONTINUE, exit_code=128 + number) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def disk_errors_explained(cache: Path) -> Iterator[None]:
    """Turn a full or failing disk into one line."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or cache)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        fix = f"free some space and {CONTINUE}" if full else CONTINUE
        found = f"cannot be read or written ({os.strerror(error.errno) if error.errno else error})"
        raise LockstepError(where, found=found, fix=fix, exit_code=1) from None


def check_free_space(cache: Path, wanted_bytes: int) -> None:
    """Raise before anything is written when the new shards cannot fit."""
    free = shutil.disk_usage(cache).free
    if wanted_bytes > free:
        found = f"{free / 2**20:.0f} MiB free"
        expected = f"{wanted_bytes / 2**20:.0f} MiB for the new shards"
        raise LockstepError(
            str(cache), found=found, expected=expected, fix="choose another disk for --cache", exit_code=1
        )
