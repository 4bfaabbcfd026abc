"""Choosing the worker pool of a command."""

import os

from xtts.precompute.workers.arithmetic import worker_environment
from xtts.precompute.workers.ray_pool import RayPool
from xtts.precompute.workers.worker_pool import OWN_CLUSTER, ProcessPool, ThisProcess, WorkerPool
from xtts.shared.errors import LockstepError


def ray_address_of(engine: str, ray_address: str | None) -> str | None:
    """Return the Ray address from the options `--engine` and `--ray-address`; None for local processes."""
    if engine not in ("local", "ray"):
        raise LockstepError("--engine", found=repr(engine), expected="local or ray")
    if engine == "local" and ray_address is not None:
        expected = "--engine ray --ray-address ..."
        raise LockstepError("--ray-address", found="no --engine ray beside it", expected=expected)
    return (ray_address or OWN_CLUSTER) if engine == "ray" else None


def open_pool(workers: int, ray_address: str | None = None) -> WorkerPool:
    """Return a pool: processes of this machine, a Ray cluster at an address, or a new one for `OWN_CLUSTER`.

    workers: processes, or CPUs of a new cluster; 0 runs the tasks in this process. ray_address: from `ray_address_of`.
    """
    if ray_address is None and workers == 0:
        os.environ.update(worker_environment())  # numpy, unless already imported, then computes as in a worker
        return ThisProcess()
    return ProcessPool(workers) if ray_address is None else RayPool(workers, ray_address)
