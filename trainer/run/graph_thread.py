"""A thread for the graph, so that the main thread reports and handles signals while it runs."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

_SIGNAL_SECONDS = 0.05
"""Interval of checks for signals."""
T = TypeVar("T")


class GraphThread:
    """Runs calls one after another; leaving the `with` block waits for the last."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        """meanwhile: called again and again by the thread that waits for a result."""
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="graph")
        self._meanwhile = meanwhile

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def submit(self, call: Callable[..., T], *arguments: object) -> Future[T]:
        """Start a call, and do not wait for it."""
        return self._pool.submit(call, *arguments)

    def result(self, call: Future[T]) -> T:
        """Wait for a call of this thread or another."""
        while not call.done():
            wait([call], timeout=_SIGNAL_SECONDS)
            self._meanwhile()
        return call.result()

    def run(self, call: Callable[..., T], *arguments: object) -> T:
        """The result of a call."""
        return self.result(self.submit(call, *arguments))
