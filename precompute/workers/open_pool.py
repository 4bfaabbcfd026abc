"""Choosing the worker pool of a command."""

import os

from xtts.precompute.workers.arithmetic import worker_environment
from xtts.precompute.workers.ray_pool import RayPool
from xtts.precompute.workers.worker_pool import ProcessPool, ThisProcess, WorkerPool
from xtts.shared.errors import LockstepError


def open_pool(workers: int, engine: str = "local") -> WorkerPool:
    """Return the pool of `--engine`: `local`, processes of this machine, or `ray`, a Ray cluster.

    workers: processes, or CPUs of a new cluster; 0 processes run the tasks in this one.
    """
    if engine not in ("local", "ray"):
        raise LockstepError("--engine", found=repr(engine), expected="local or ray")
    if engine == "ray":
        return RayPool(workers)
    if workers:
        return ProcessPool(workers)
    os.environ.update(worker_environment())  # numpy, unless already imported, then computes as in a worker
    return ThisProcess()
