"""Pools that run the tasks of stage 1, on processes of this machine or on a Ray cluster, and progress reports."""

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


class Progress:
    """Receives the progress of a long job and ignores it; the command line shows it."""

    def say(self, text: str) -> None:
        """Report a line of text."""

    def start(self, stage: str, clips: int) -> None:
        """Begin a stage of `clips` clips."""

    def advance(self, clips: int, seconds: float) -> None:
        """Report that `clips` more clips with `seconds` of audio are done."""


class WorkerPool:
    """Runs a function on many tasks, in processes that start with the first task and end with the `with` block.

    The default methods suit a pool without processes.
    """

    workers = 0
    """Processes of this machine that it starts."""
    spans_machines = False
    """Whether a task may run on another machine, which may see other files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the processes, after an error without waiting for their tasks."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results in any order; the function is pickled once, with its bound arguments.

        Only a bounded count of tasks is taken ahead of the results, to bound memory. Raises the error of a task, and a
        `LockstepError` if its process or machine is lost.
        """
        raise NotImplementedError


def call(packed: bytes, task: object) -> Any:  # noqa: ANN401 - of any packed function
    """Apply a packed function to a task (runs in a worker, which unpickles the function once)."""
    return _unpacked(packed)(task)


_unpacked: Callable[[bytes], Callable[..., Any]] = lru_cache(maxsize=1)(pickle.loads)


class ThisProcess(WorkerPool):
    """Runs the tasks one after the other in the calling process."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results in the order of the tasks, each computed on demand."""
        return map(function, tasks)


class ProcessPool(WorkerPool):
    """Processes of this machine, which end with their parent, even if that is killed."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor: ProcessPoolExecutor | None = None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._executor is not None:
            for process in list((self._executor._processes or {}).values()):
                process.kill()  # idle after the last result; a regular exit takes 0.4 s longer
            self._executor.shutdown(wait=True, cancel_futures=True)

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results as they come; at most two tasks per worker wait, to stop quickly and bound memory."""
        pending, packed = set[Future[Result]](), pickle.dumps(function)
        try:
            for task in tasks:
                while len(pending) >= 2 * self.workers:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
                pending.add(self._submit(packed, task))
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            fix = f"free memory or use fewer --workers, then {CONTINUE}"
            problem = "died (killed, or out of memory)"
            raise LockstepError("a worker process", found=problem, fix=fix, exit_code=1) from None

    def _submit(self, packed: bytes, task: object) -> Future[Any]:
        if self._executor is None:
            os.environ.update(worker_environment())
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_prepare_worker)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # as a process that this may start inherits it
        try:
            return self._executor.submit(call, packed, task)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _prepare_worker() -> None:
    """Leave the signals of a terminal or scheduler to the parent, and exit when it ends, even by kill -9."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    keep_freed_memory()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def exit_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()
