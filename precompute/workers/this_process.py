"""The `Engine` without processes: for `workers=0`, and for work so small that starting a process would take longer."""

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

from xtts.precompute.workers.engine import Result, Task


class ThisProcess:
    """Does the tasks one after the other where it is called."""

    spans_machines = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing runs elsewhere."""

    def start(self) -> None:
        """Nothing to start."""

    def finish(self) -> None:
        """Nothing to end."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks, each done when it is asked for."""
        return map(function, tasks)
