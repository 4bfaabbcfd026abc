"""Locks of a folder for one writer and many readers: on two empty files in it, released when their process ends.

The files are opened for writing and never removed: NFS grants an exclusive lock only on such a file, and if a lock file
is removed, two processes can hold it.
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
"""Error numbers of `flock` if another process holds the lock; the second is that of NFS."""


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the writer's lock of a folder; `LockstepError` if another process holds it, or there are no file locks."""
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
            fix = "mount it with locks (NFS: a running lockd; Lustre: -o flock), or use a local disk"
            raise LockstepError(str(path), found=found, expected="locks, so that no two runs mix", fix=fix) from None
        yield
    finally:
        os.close(descriptor)


class ReadLock:
    """Keeps builds from removing files of a folder, until `release`, the end of a `with`, or garbage collection.

    Any number of processes may hold one. Without locks in the file system, or in a read-only folder without a lock
    file, readers continue without it.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = _shared_lock(folder)
        self._release = None if descriptor is None else weakref.finalize(self, os.close, descriptor)

    def release(self) -> None:
        """Release the lock; later calls do nothing."""
        if self._release is not None:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def without_readers(folder: Path) -> Iterator[bool]:
    """Yield whether no `ReadLock` is held on a folder; if so, none can be taken inside."""
    fcntl = _fcntl(folder)
    try:
        descriptor = os.open(folder / READERS_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield False  # unknown
        return
    try:
        free = False
        with suppress(OSError):  # held, or no locks in this file system
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        yield free
    finally:
        os.close(descriptor)


@contextmanager
def blocking_lock(path: Path) -> Iterator[None]:
    """Wait for an exclusive lock on an empty file, and hold it inside: processes take turns."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _fcntl(path.parent).flock(descriptor, _fcntl(path.parent).LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _shared_lock(folder: Path) -> int | None:
    """Return a descriptor that holds the readers' lock; None if it cannot be taken."""
    path = folder / READERS_FILE
    for flags in (os.O_RDONLY | os.O_CREAT, os.O_RDONLY):
        with suppress(OSError, LockstepError):
            fcntl, descriptor = _fcntl(folder), os.open(path, flags, 0o666)
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
        ) from None
    return fcntl
