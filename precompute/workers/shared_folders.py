"""Folders to which the workers of a build write, on any machine."""

import socket
from pathlib import Path
from uuid import uuid4

from xtts.precompute.workers.stopping import CONTINUE
from xtts.shared.errors import LockstepError


def attempt_path(path: Path) -> Path:
    """Return a path beside `path` that no other attempt at the same task has, not even one presumed dead.

    Raises a `LockstepError` if this process does not see the folder: its machine does not share it, or the build has
    ended.
    """
    check_visible(path.parent)
    return path.with_name(f"{uuid4().hex[:12]}-{path.name}")


def check_visible(folder: Path) -> None:
    """Raise a `LockstepError` if this process does not see a folder of the build."""
    if not folder.is_dir():
        raise LockstepError(
            str(folder), found=f"not seen from {socket.gethostname()}", expected="a folder that every machine shares",
            fix=f"mount it there at the same path, and {CONTINUE}", exit_code=1,
        )  # fmt: skip


def beside(folder: Path) -> Path:
    """Return the nearest existing parent of a folder, for files that must not be inside: machines share both."""
    return next(parent for parent in folder.absolute().parents if parent.is_dir())
