"""Which engine a command runs on."""

from xtts.precompute.workers.engine import OWN_CLUSTER, Engine
from xtts.precompute.workers.pool import WorkerPool
from xtts.precompute.workers.ray_engine import RayEngine
from xtts.shared.errors import LockstepError

ENGINES = ("local", "ray")


def ray_address_of(engine: str, ray_address: str | None) -> str | None:
    """The Ray address that the options `--engine` and `--ray-address` mean together; None for local processes."""
    if engine not in ENGINES:
        raise LockstepError("--engine", found=repr(engine), expected=" or ".join(ENGINES))
    if engine == "local" and ray_address is not None:
        raise LockstepError(
            "--ray-address", found="no --engine ray beside it", expected="--engine ray --ray-address ..."
        )
    return (ray_address or OWN_CLUSTER) if engine == "ray" else None


def open_engine(workers: int, ray_address: str | None = None) -> Engine:
    """So many processes of this machine, or the Ray cluster at an address; at `OWN_CLUSTER` a new one of so many CPUs.

    `ray_address` is what `ray_address_of` gives.
    """
    return WorkerPool(workers) if ray_address is None else RayEngine(workers, ray_address)
