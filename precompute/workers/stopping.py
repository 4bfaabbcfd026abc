"""Stopping a build by signals, and the advice of its errors on continuing."""

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
def stoppable(cache: Path | str, fix: str = CONTINUE) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a `LockstepError` that says how to continue, `fix` (main thread only)."""

    def stop(signum: int, _: FrameType | None) -> None:
        raise Stopped(signal.Signals(signum))

    handlers = {signum: signal.signal(signum, stop) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Stopped as stopped:
        (signum,) = stopped.args
        problem = f"stopped by {signum.name}"
        raise LockstepError(str(cache), found=problem, fix=fix, exit_code=128 + signum) from None
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
