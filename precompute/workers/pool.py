"""A pool of light worker processes that end with their parent, however it ends."""

import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Self

from xtts.precompute.workers.arithmetic import worker_environment
from xtts.precompute.workers.engine import Result, Task, call, pack
from xtts.precompute.workers.stopping import CONTINUE
from xtts.shared.errors import LockstepError
from xtts.shared.system.machine import keep_freed_memory


class WorkerPool:
    """The local `Engine`: spawned processes; nothing starts before `start` or the first task."""

    spans_machines = False

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._executor: ProcessPoolExecutor | None = None
        self._ending: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            if kind is not None:
                self._end_workers()
            if self._ending is None:
                self._executor.shutdown(wait=True, cancel_futures=True)
            else:
                self._ending.join()

    def start(self) -> None:
        """Let the workers load the feature extractor while the parent has other things to do."""
        for _ in range(self._workers):
            self._executor_with_workers().submit(load_extractor)

    def finish(self) -> None:
        """No task will follow: let the workers end while the parent goes on."""
        if self._executor is not None:
            self._ending = threading.Thread(target=self._executor.shutdown)
            self._ending.start()

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

    def _end_workers(self) -> None:
        for process in list((self._executor._processes or {}).values()) if self._executor else []:
            process.kill()


def load_extractor() -> None:
    """Import what the tasks of a build need (runs in a worker)."""
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
