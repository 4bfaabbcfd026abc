"""The `WorkerPool` on a Ray cluster. It starts tasks of one CPU; Ray handles retries and lost machines."""

import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any, cast

from xtts.precompute.workers.arithmetic import installed_versions, worker_environment
from xtts.precompute.workers.stopping import CONTINUE
from xtts.precompute.workers.worker_pool import Result, Task, WorkerPool, call
from xtts.shared.errors import LockstepError, import_extra
from xtts.shared.system.machine import keep_freed_memory

_ANSWER_SECONDS = 3.0
_LOOK_SECONDS = 10.0
"""Time between two checks of the size of the cluster."""
_LONGEST_WITHOUT_CPU = 60.0
_OBJECT_STORE_BYTES = 2**28
"""Size of the object store of a new cluster; tasks and results are small."""
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Variables that turn off Ray's usage reports and its warning about accelerators."""


class RayPool(WorkerPool):
    """A Ray cluster: the one at `RAY_ADDRESS`, Ray's own variable, or a new one with `workers` CPUs on this machine.

    A process that is already connected to a cluster keeps its connection and uses that cluster.
    """

    spans_machines = True

    def __init__(self, workers: int) -> None:
        self._workers, self._address = workers, os.environ.get("RAY_ADDRESS", "")
        self._ray: Any = None
        self._is_own = False
        self._pending = list[Any]()
        self._cpus, self._looked_at = 0, -_LOOK_SECONDS

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._ray is None:
            return
        if kind is not None:
            for task in self._pending:
                self._ray.cancel(task, force=True)
        if self._is_own:
            self._ray.shutdown()
        self._ray, self._pending = None, []

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results as they come; at most two tasks per CPU wait. The object store holds the function once."""
        packed, self._pending = None, []
        for task in tasks:
            if packed is None:  # connect with the first task only
                self._connect()
                packed = self._ray.put(pickle.dumps(function))
            while len(self._pending) >= 2 * max(1, self._cpus_now()):
                yield cast(Result, self._next())
            # Pickled here: Ray's own pickling calls Python code for each dataclass.
            pickled_task = pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
            self._pending.append(self._remote.remote(packed, pickled_task, self._versions))
        while self._pending:
            yield cast(Result, self._next())

    def _next(self) -> object:
        waited = 0.0
        while True:
            done, self._pending = self._ray.wait(self._pending, timeout=_LOOK_SECONDS)
            if done:
                return self._result(done[0])
            waited = 0.0 if self._cpus_now() else waited + _LOOK_SECONDS
            if waited >= _LONGEST_WITHOUT_CPU:
                raise self._failed("no machine with a CPU is left")

    def _result(self, done: object) -> object:
        errors = self._ray.exceptions
        try:
            return pickle.loads(self._ray.get(done))
        except errors.RayTaskError as error:
            if isinstance(error.cause, (LockstepError, OSError)):
                raise error.cause from None
            if "failed to import" in str(error.cause):
                raise self._failed("one of its machines lacks lockstep-tts, or has another version") from None
            raise
        except errors.RayError as error:
            raise self._failed(f"a task failed for good ({type(error).__name__})") from None

    def _failed(self, problem: str) -> LockstepError:
        location = f"the Ray cluster{' at ' * bool(self._address)}{self._address}"
        return LockstepError(location, found=problem, fix=f"see its log, then {CONTINUE}", exit_code=1)

    def _cpus_now(self) -> int:
        """Return the count of CPUs in the cluster, which may grow and shrink."""
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._cpus = int(self._ray.cluster_resources().get("CPU", 0))
        return self._cpus

    def _connect(self) -> None:
        if self._ray is not None:
            return
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        ray = import_extra("ray", "ray", "--engine ray", "ray is not installed")
        environment = {"env_vars": worker_environment()}
        self._is_own = not ray.is_initialized()
        if self._is_own:
            _initialise(ray, self._workers, self._address, environment)
        self._ray, self._versions = ray, installed_versions()
        self._remote = ray.remote(num_cpus=1, runtime_env=environment)(run_packed)
        if not self._cpus_now():
            raise self._failed("no machine with a CPU")


def _initialise(ray: ModuleType, workers: int, address: str, environment: dict[str, dict[str, str]]) -> None:
    options: dict[str, object] = {"log_to_driver": False, "logging_level": "ERROR", "runtime_env": environment}
    if address:
        options["address"] = _answering(address)
    else:
        options |= {"address": "local", "num_cpus": workers, "include_dashboard": False}
        options["object_store_memory"] = _OBJECT_STORE_BYTES
    handler = signal.getsignal(signal.SIGTERM)  # restored below: Ray replaces it
    try:
        ray.init(**options)
    except (OSError, RuntimeError, ValueError) as error:
        raise _unusable(address, str(error).partition("\n")[0]) from None
    except SystemExit:  # Ray exits if it gives up
        raise _unusable(address, "no answer") from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _answering(address: str) -> str:
    """Return the address if something answers there, else raise at once: Ray would try for two minutes or more."""
    if address == "auto":
        return address  # Ray looks for a cluster on this machine and fails at once if there is none
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise LockstepError("RAY_ADDRESS", found=repr(address), expected="auto or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise _unusable(address, str(error)) from None
    return address


def _unusable(address: str, reason: str) -> LockstepError:
    fix = "start one there (ray start --head), or unset RAY_ADDRESS for one on this machine"
    location = f"RAY_ADDRESS={address}" if address else "--engine ray"
    return LockstepError(location, found=f"no Ray cluster ({reason})", fix=fix)


def run_packed(packed: bytes, task: bytes, versions: dict[str, str]) -> bytes:
    """Run a task (in a Ray worker)."""
    _prepare_process(tuple(versions.items()))
    return pickle.dumps(call(packed, pickle.loads(task)), pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=1)
def _prepare_process(versions: tuple[tuple[str, str], ...]) -> None:
    """Prepare a worker for its first task; raise a `LockstepError` if its packages could change what it writes."""
    keep_freed_memory()
    installed = installed_versions()
    differing = [(name, wanted) for name, wanted in versions if installed[name] != wanted]
    if differing:
        problem = ", ".join(f"{name} {installed[name]}" for name, _ in differing)
        expected = ", ".join(f"{name} {wanted}" for name, wanted in differing)
        fix = "install the same versions on every machine of the Ray cluster"
        raise LockstepError(socket.gethostname(), found=problem, expected=expected, fix=fix, exit_code=1)
