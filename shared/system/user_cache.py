"""The folder of what can be made again at any time."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Lockstep's folder in the user's cache; it may not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockstep"
