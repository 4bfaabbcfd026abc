"""Signals as requests to save and stop, and a thread for the graph, which leaves Python free for them."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

_SIGNAL_SECONDS = 0.05
"""Interval of checks for signals."""
T = TypeVar("T")


@contextmanager
def stop_requests() -> Iterator[list[str]]:
    """A list that receives the name of SIGINT, SIGTERM or SIGHUP; a second signal stops at once.

    SIGHUP, which a terminal sends when it closes, stays ignored where it is (`nohup`); else nothing more is printed on
    the terminal, which would fail. Outside the main thread signals are left to the calling program.
    """
    received: list[str] = []
    if threading.current_thread() is not threading.main_thread():  # Python sets handlers only there
        yield received
        return

    def note(number: int, _: FrameType | None) -> None:
        received.append(signal.Signals(number).name)
        for descriptor in terminals if number == signal.SIGHUP else []:
            os.dup2(nowhere, descriptor)
        if len(received) > 1:
            raise KeyboardInterrupt

    terminals, nowhere = [*filter(os.isatty, (1, 2))], os.open(os.devnull, os.O_WRONLY)
    ignores = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    taken = (signal.SIGINT, signal.SIGTERM, *([] if ignores else [signal.SIGHUP]))
    before = {number: signal.signal(number, note) for number in taken}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(nowhere)


class GraphThread(ThreadPoolExecutor):
    """Runs calls one after another; leaving the `with` block waits for the last."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        """meanwhile: called repeatedly by the thread that waits for a result."""
        super().__init__(max_workers=1, thread_name_prefix="graph")
        self._meanwhile = meanwhile

    def result(self, call: Future[T]) -> T:
        """Wait for the result of a call of this thread or another."""
        while not call.done():
            wait([call], timeout=_SIGNAL_SECONDS)
            self._meanwhile()
        return call.result()

    def run(self, call: Callable[..., T], *arguments: object) -> T:
        """Submit a call and wait for its result, after what came before."""
        self._meanwhile()
        return self.result(self.submit(call, *arguments))
