"""What this machine offers a process: cores, a folder for what can be made again, memory."""

import ctypes
import os
import sys
from pathlib import Path


def usable_cores() -> int:
    """Cores that this process may use; macOS and Windows cannot restrict them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def user_cache() -> Path:
    """Lockstep's folder in the user's cache; it may not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"


def peak_resident_bytes(*, workers: int = 0) -> int:
    """Largest resident size so far of this process plus, per worker, of any child that has ended."""
    import resource  # not on Windows, where builds and runs are refused for want of locks

    unit = 1 if sys.platform == "darwin" else 1024
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return unit * (own + workers * child)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_KEPT_BYTES = 2**28


def keep_freed_memory() -> None:
    """Let malloc keep large freed blocks: to give them back and fault them in again costs 1 ms a clip in stage 1.

    Of stage 2 these are its batches and records, read and freed again without end. Once a process, before its threads
    start; blocks above `_KEPT_BYTES` go back as ever.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc only
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
