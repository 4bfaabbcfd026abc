"""The folder of local copies: shards of any number of remote caches, together at most so many bytes.

Several processes may share it. Each says in a file which copies it uses (its pins), and holds a lock on that file while
it lives. Whoever needs room removes copies that nobody has pinned. All of this is done in turn, under one lock; the
downloads themselves are not.
"""

import json
import os
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import in_turn, locked
from xtts.shared.system.user_cache import user_cache

_LOCK_FILE, _PINS, _PART = ".staging", ".pins", ".part"
_COPIES = "*/*/bucket-*/shard-*"
"""Cache, split, bucket and shard."""


def stage_root(given: str | None) -> Path:
    """Where local copies lie: as `data.stage` says, else in the user's cache."""
    return Path(given).expanduser() if given else user_cache() / "caches"


class StageFolder:
    """What one process does in the folder."""

    def __init__(self, root: Path, limit_bytes: int) -> None:
        self.root, self.limit_bytes = root, limit_bytes
        self._pinned = set[Path]()
        try:
            (root / _PINS).mkdir(parents=True, exist_ok=True)
            path = root / _PINS / f"{os.getpid()}-{uuid4().hex[:8]}.json"
            self._file = path.open("w+", encoding="utf-8")
        except OSError as error:
            raise disk_error(root, error) from None
        locked(self._file.fileno())
        self._close = weakref.finalize(self, _close, self._file, path)

    def close(self) -> None:
        """Give up all pins."""
        self._close()

    def pin(self, files: Collection[Path]) -> bool:
        """Keep these files, if all are there; False, and nothing is pinned, where one is not."""
        with self._in_turn():
            if not all(file.exists() for file in files):
                return False
            self._write_pins(self._pinned | set(files))
            return True

    def unpin(self, files: Collection[Path]) -> None:
        """Let these files go."""
        with self._in_turn():
            self._write_pins(self._pinned - set(files))

    @contextmanager
    def new_copy(self, target: Path, size: int, *, keep: Collection[Path] = ()) -> Iterator[IO[bytes] | None]:
        """A file to write a copy of so many bytes into, which takes its place if the block ends well.

        None where there is no need to: it is there, another process is writing it, or there is no room. Room is made by
        removing copies that no process has pinned and that are not in `keep`.
        """
        part = self._claim(target, size, keep)
        if part is None:
            yield None
            return
        path = target.with_name(target.name + _PART)
        try:
            with part:
                yield part
                with self._in_turn():  # whoever makes room counts every file once, under one name
                    path.replace(target)
        except BaseException:
            with self._in_turn():
                path.unlink(missing_ok=True)
            raise

    def _claim(self, target: Path, size: int, keep: Collection[Path]) -> IO[bytes] | None:
        with self._in_turn():
            if target.exists():
                return None
            target.parent.mkdir(parents=True, exist_ok=True)
            path = target.with_name(target.name + _PART)
            part = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
            mine = locked(part.fileno())
            if mine and self._make_room(size, {*keep, path}):
                os.truncate(part.fileno(), size)  # it counts as a whole from now on
                return part
            part.close()
            if mine:
                path.unlink()
            return None

    def _make_room(self, size: int, keep: Collection[Path]) -> bool:
        sizes = {path: path.stat().st_size for path in self.root.glob(_COPIES) if path not in keep}
        kept = sum(path.stat().st_size for path in keep if path.exists())
        excess = sum(sizes.values()) + kept + size - self.limit_bytes
        if excess <= 0:
            return True
        pinned, removed = self._pinned | self._pinned_by_others(), list[Path]()
        for path in sorted(sizes, key=lambda path: path.stat().st_mtime):
            if excess > 0 and path not in pinned and not _in_work(path):
                removed.append(path)
                excess -= sizes[path]
        if excess > 0:
            return False
        for path in removed:
            path.unlink(missing_ok=True)
        return True

    def _pinned_by_others(self) -> set[Path]:
        pinned = set[Path]()
        for path in (self.root / _PINS).glob("*.json"):
            if path == Path(self._file.name):
                continue
            with suppress(OSError), path.open("r+", encoding="utf-8") as file:
                if locked(file.fileno()):  # its process has ended
                    path.unlink(missing_ok=True)
                else:
                    pinned |= {self.root / name for name in json.loads(file.read() or "[]")}
        return pinned

    def _write_pins(self, pinned: set[Path]) -> None:
        self._pinned = pinned
        self._file.seek(0)
        self._file.truncate()
        json.dump(sorted(path.relative_to(self.root).as_posix() for path in pinned), self._file)
        self._file.flush()

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        try:
            with in_turn(self.root / _LOCK_FILE):
                yield
        except OSError as error:
            raise disk_error(self.root, error) from None


def _in_work(path: Path) -> bool:
    """Whether a process is writing this file."""
    if path.suffix != _PART:
        return False
    with path.open("rb") as file:
        return not locked(file.fileno())


def _close(file: IO[str], path: Path) -> None:
    path.unlink(missing_ok=True)
    file.close()


def disk_error(root: Path, error: OSError) -> LockstepError:
    """What the disk of the local copies says."""
    return LockstepError(
        str(error.filename or root), found=f"cannot be written ({error.strerror})",
        fix="make room, give another folder with --set data.stage=DIR, or less with --set data.stage_gb=N", exit_code=1,
    )  # fmt: skip
