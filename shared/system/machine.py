"""The machine as a process sees it: cores, the user's cache folder, memory."""

import ctypes
import os
import sys
from pathlib import Path


def usable_cores() -> int:
    """Count the cores that this process may use; macOS and Windows cannot restrict them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def user_cache() -> Path:
    """Return Lockstep's folder in the user's cache; it may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"


def peak_resident_bytes(*, workers: int = 0) -> int:
    """Return the peak resident size of this process plus, per worker, that of the largest child that has ended."""
    import resource  # not on Windows, where builds and runs are refused: it has no fcntl

    unit = 1 if sys.platform == "darwin" else 1024
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return unit * (own + workers * child)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_KEPT_BYTES = 2**28


def keep_freed_memory() -> None:
    """Let malloc keep large freed blocks: returning them and faulting them in again costs 1 ms a clip in stage 1.

    In stage 2 these are batches and records. Call it once per process, before threads start; blocks above
    `_KEPT_BYTES` are returned all the same.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc only
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
