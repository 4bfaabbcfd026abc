"""What runs the tasks of stage 1: processes of this machine, or a Ray cluster."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

OWN_CLUSTER = "local"
"""The Ray address of a cluster that is started on this machine, and ends with the command."""


class Engine(Protocol):
    """Runs a function on many tasks, in processes that end with the `with` block."""

    spans_machines: bool
    """Whether a task may run on another machine, with a view of the files of its own."""

    def __enter__(self) -> Self:
        """Nothing starts before `start` or the first task."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes; after an error without waiting for their tasks."""

    def start(self) -> None:
        """Let the processes load the feature extractor while the caller has other things to do."""

    def finish(self) -> None:
        """No task will follow: the processes may end while the caller goes on."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results as they come, in any order; the function, with what is bound to it, is packed once.

        Only a bounded number of tasks is taken ahead of the results, so that memory is bounded too. What a task raises
        is raised here; a `LockstepError` when its process or machine is lost for good.
        """


def pack(function: Callable[..., Any]) -> bytes:
    """A function of a module with what is bound to it, as `call` takes it."""
    return pickle.dumps(function, pickle.HIGHEST_PROTOCOL)


def call(packed: bytes, task: Any) -> Any:  # noqa: ANN401 - of any packed function
    """Apply it to a task (runs in a worker, which unpacks it once)."""
    return _unpacked(packed)(task)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Callable[..., Any]:
    function: Callable[..., Any] = pickle.loads(packed)
    return function


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
