"""Locks: one process writes to a folder, many read it; missing locks are reported."""

import errno
import fcntl
import os

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import ReadLock, exclusive, without_readers


def test_a_second_writer_is_refused_until_the_first_ends(tmp_path):
    refused = pytest.raises(LockstepError, match="another process is at work")
    with exclusive(tmp_path), refused, exclusive(tmp_path):
        pass
    with exclusive(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_lock_files_are_opened_for_writing(tmp_path, monkeypatch):
    """NFS answers EBADF to an exclusive lock on anything else."""
    seen, real = [], fcntl.flock

    def flock(descriptor, operation):
        if operation & fcntl.LOCK_EX:
            seen.append(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE)
            assert os.path.isfile(f"/proc/self/fd/{descriptor}")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with exclusive(tmp_path), without_readers(tmp_path) as free:
        assert free
    assert seen == [os.O_RDWR, os.O_RDWR]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EBADF])
def test_missing_locks_stop_writers_but_not_readers(monkeypatch, tmp_path, code):
    def flock(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LockstepError) as caught, exclusive(tmp_path):
        pass
    message = str(caught.value)
    assert f"{tmp_path}/.lock: this file system cannot lock a file ({os.strerror(code)}), expected locks" in message
    assert "NFS" in caught.value.fix
    with ReadLock(tmp_path), without_readers(tmp_path) as free:
        assert not free


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_stops_writers_but_not_readers(monkeypatch, tmp_path, code):
    real = os.open

    def opened(path, flags, *mode):
        if flags & os.O_CREAT and not os.path.exists(path):
            raise OSError(code, os.strerror(code))
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(LockstepError, match=r"\.lock: cannot be opened for writing") as caught, exclusive(tmp_path):
        pass
    assert os.strerror(code) in caught.value.found
    with ReadLock(tmp_path):
        assert not list(tmp_path.iterdir())
    (tmp_path / ".readers").write_bytes(b"")  # by a build, on a disk that is mounted here without write access
    with ReadLock(tmp_path), without_readers(tmp_path) as free:
        assert not free
    with without_readers(tmp_path) as free:
        assert free


def test_read_locks_are_shared_and_end_with_their_release(tmp_path):
    """Or with their process, as the system ends every lock."""
    first, other, nowhere = ReadLock(tmp_path), ReadLock(tmp_path), ReadLock(tmp_path / "nowhere")
    nowhere.release()
    for lock in (first, other):
        with without_readers(tmp_path) as free:
            assert not free
        lock.release()
    with without_readers(tmp_path) as free:
        assert free
