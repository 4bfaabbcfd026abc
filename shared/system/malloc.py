"""How the C library keeps freed memory."""

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_KEPT_BYTES = 2**28


def keep_freed_memory() -> None:
    """Let malloc keep large freed blocks: to give them back and fault them in again costs 1 ms a clip in stage 1.

    Of stage 2 these are its batches and records, read and freed again without end. Once a process, before its threads
    start; blocks above `_KEPT_BYTES` go back as ever.
    """
    try:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc only
    except (OSError, TypeError):  # Windows has no library of that name: None
        return
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
