"""What runs the tasks of stage 1, processes of this machine or a Ray cluster, and who hears how far they are."""

import importlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import Any, Self, TypeVar

from xtts.precompute.workers.arithmetic import worker_environment
from xtts.precompute.workers.stopping import CONTINUE
from xtts.shared.errors import LockstepError
from xtts.shared.system.machine import keep_freed_memory

Task = TypeVar("Task")
Result = TypeVar("Result")

OWN_CLUSTER = "local"
"""The Ray address of a cluster that is started on this machine, and ends with the command."""


class Progress:
    """Receives the state of a long job, and ignores it; the command line draws it."""

    def say(self, text: str) -> None:
        """One line worth reading."""

    def start(self, stage: str, clips: int, seconds: float) -> None:
        """Begin a stage of so many clips and so many seconds of audio."""

    def advance(self, clips: int, seconds: float) -> None:
        """So many clips of it were done just now."""


class TaskEngine:
    """Runs a function on many tasks, in processes that end with the `with` block; nothing starts before the first task.

    What is not overridden suits one that has no processes.
    """

    spans_machines = False
    """Whether a task may run on another machine, with a view of the files of its own."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the processes; after an error without waiting for their tasks."""

    def start(self) -> None:
        """Let the processes load the feature extractor while the caller has other things to do."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results as they come, in any order; the function, with what is bound to it, is packed once.

        Only a bounded number of tasks is taken ahead of the results, so that memory is bounded too. What a task raises
        is raised here; a `LockstepError` when its process or machine is lost for good.
        """
        raise NotImplementedError


def pack(function: Callable[..., Any]) -> bytes:
    """A function of a module with what is bound to it, as `call` takes it."""
    return pickle.dumps(function, pickle.HIGHEST_PROTOCOL)


def call(packed: bytes, task: object) -> Any:  # noqa: ANN401 - of any packed function
    """Apply it to a task (runs in a worker, which unpacks it once)."""
    return _unpacked(packed)(task)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Callable[..., Any]:
    function: Callable[..., Any] = pickle.loads(packed)
    return function


class ThisProcess(TaskEngine):
    """Does the tasks one after the other where it is called."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks, each done when it is asked for."""
        return map(function, tasks)


class WorkerPool(TaskEngine):
    """Light processes of this machine, which end with their parent, however it ends."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._executor: ProcessPoolExecutor | None = None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._executor is not None:
            for process in list((self._executor._processes or {}).values()):
                process.kill()  # idle after the last result, and 0.4 s faster than their own end
            self._executor.shutdown(wait=True, cancel_futures=True)

    def start(self) -> None:
        """Submit a task to each process that loads it."""
        for _ in range(self._workers):
            self._executor_with_workers().submit(load_extractor)

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results as they come; at most two tasks a worker wait, so that stopping is quick and memory bounded."""
        pending, packed = set[Future[Result]](), pack(function)
        try:
            for task in tasks:
                while len(pending) >= 2 * self._workers:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
                pending.add(self._executor_with_workers().submit(call, packed, task))
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            fix = f"free memory or use fewer --workers, then {CONTINUE}"
            raise LockstepError(
                "a worker process", found="died (killed, or out of memory)", fix=fix, exit_code=1
            ) from None

    def _executor_with_workers(self) -> ProcessPoolExecutor:
        if self._executor is None:
            os.environ.update(worker_environment())
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_prepare_worker)
        return self._executor


def load_extractor(_: None = None) -> None:
    """Import what the tasks of a build need, as a task without input (runs in a worker)."""
    for module in ("xtts.precompute.features.extract", "xtts.precompute.features.scan", "scipy.fft"):
        importlib.import_module(module)


def _prepare_worker() -> None:
    """Leave the signals of a terminal or a scheduler to the parent, and end when it is gone, even by kill -9."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    keep_freed_memory()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
