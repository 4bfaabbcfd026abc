"""Files of a build that its workers write, on whichever machine they are."""

import socket
from pathlib import Path
from uuid import uuid4

from xtts.precompute.workers.stopping import CONTINUE
from xtts.shared.errors import LockstepError


def attempt_path(path: Path) -> Path:
    """A name beside `path` that no other attempt at the same task has, not even one that is believed dead.

    A `LockstepError` where this process does not see the folder: it is on a machine that does not share it, or of a
    build that has ended.
    """
    check_visible(path.parent)
    return path.with_name(f"{uuid4().hex[:12]}-{path.name}")


def check_visible(folder: Path) -> None:
    """A `LockstepError` where a folder that the build uses is not there for this process."""
    if not folder.is_dir():
        raise LockstepError(
            str(folder), found=f"not seen from {socket.gethostname()}", expected="a folder that every machine shares",
            fix=f"mount it there at the same path, and {CONTINUE}", exit_code=1,
        )  # fmt: skip


def beside(folder: Path) -> Path:
    """The nearest folder above one, for what must not be in it: every machine that sees the one sees the other."""
    return next(above for above in folder.absolute().parents if above.is_dir())
