"""The most memory that this process has used at once."""

import sys


def peak_resident_bytes(*, workers: int = 0) -> int:
    """Largest resident size so far of this process plus, per worker, of any child that has ended.

    0 where Python has no module `resource` to tell it (Windows).
    """
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return unit * (own + workers * child)
