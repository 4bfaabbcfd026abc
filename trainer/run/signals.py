"""SIGINT and SIGTERM as a request to save and stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_requests() -> Iterator[list[str]]:
    """A list that receives the name of SIGINT or SIGTERM; a second signal stops at once.

    Outside the main thread signals are left to the calling program.
    """
    received: list[str] = []
    if threading.current_thread() is not threading.main_thread():  # Python sets handlers only there
        yield received
        return

    def note(number: int, _: FrameType | None) -> None:
        received.append(signal.Signals(number).name)
        if len(received) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
