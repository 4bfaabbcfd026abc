"""How many processes and threads are worth starting."""

import os


def usable_cores() -> int:
    """Cores that this process may use; macOS and Windows cannot restrict them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
