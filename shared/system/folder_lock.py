"""Who may change a folder and who reads it: locks on two empty files in it, which end with their process.

The files are opened for writing and stay: NFS gives an exclusive lock only on a file opened so, and to delete a lock
file is to let two processes hold it.
"""

import errno
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Self

from xtts.shared.errors import LockstepError

WRITER_FILE, READERS_FILE = ".lock", ".readers"
LOCK_FILES = (WRITER_FILE, READERS_FILE)
_HELD = (errno.EAGAIN, errno.EACCES)
"""What `flock` says of a lock that another process holds; NFS says the second."""


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Be the one process that changes a folder; a `LockstepError` where another is, or where nothing can be locked."""
    fcntl, path = _fcntl(folder), folder / WRITER_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        found = f"cannot be opened for writing ({error.strerror})"
        fix = "give a folder that this user may write to"
        raise LockstepError(str(path), found=found, expected="a file to lock", fix=fix) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                fix = "wait for it to end, or stop it"
                raise LockstepError(str(folder), found="another process is at work in this folder", fix=fix) from None
            found = f"this file system cannot lock a file ({error.strerror})"
            fix = "mount it with locks (NFS: a running lockd; Lustre: -o flock), or use a disk of this machine"
            raise LockstepError(str(path), found=found, expected="locks, so that no two runs mix", fix=fix) from None
        yield
    finally:
        os.close(descriptor)


class ReadLock:
    """Keeps the files of a folder that a build would remove, until `release`, the end of a `with`, or of the object.

    Any number of processes may hold one. Where nothing can be locked, or the folder may not be written to and has no
    file to lock yet, there is none: readers go on without it.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = _shared_lock(folder)
        self._release = None if descriptor is None else weakref.finalize(self, os.close, descriptor)

    def release(self) -> None:
        """Let it go; once is enough."""
        if self._release is not None:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def without_readers(folder: Path) -> Iterator[bool]:
    """Whether no `ReadLock` is held on a folder; if so, none is given until the end."""
    fcntl = _fcntl(folder)
    try:
        descriptor = os.open(folder / READERS_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield False  # nobody can tell
        return
    try:
        free = False
        with suppress(OSError):  # another holds it, or nothing can lock
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        yield free
    finally:
        os.close(descriptor)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Wait for a lock on an empty file and hold it for a moment, as each of several processes does in its turn."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _fcntl(path.parent).flock(descriptor, _fcntl(path.parent).LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _shared_lock(folder: Path) -> int | None:
    """A descriptor that holds the lock; None where there can be none."""
    path = folder / READERS_FILE
    for flags in (os.O_RDONLY | os.O_CREAT, os.O_RDONLY):
        try:
            fcntl = _fcntl(folder)
            descriptor = os.open(path, flags, 0o666)
        except (OSError, LockstepError):
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor
    return None


def _fcntl(folder: Path) -> ModuleType:
    try:
        import fcntl
    except ImportError:
        raise LockstepError(
            str(folder), found="no way to lock a folder (this Python has no fcntl, as on Windows)",
            expected="Linux, macOS or WSL2", fix="on Windows, run the same command in WSL2",
        ) from None  # fmt: skip
    return fcntl
