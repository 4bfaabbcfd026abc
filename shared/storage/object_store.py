"""The objects below one URL, through `pyarrow.fs`: list, read, download, upload, remove.

Arrow is imported on first use: a process without URLs never needs it.
"""

import hashlib
import io
import shutil
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.errors import LockstepError
from xtts.shared.storage.failures import with_retries
from xtts.shared.storage.urls import StoreUrl

if TYPE_CHECKING:
    from pyarrow import fs

REQUESTS_AT_ONCE = 8
_CHUNK_BYTES = 2**24
"""Bytes that one request of a download reads."""


@dataclass(frozen=True)
class ObjectInfo:
    """An object's entry in a listing."""

    bytes: int
    modified: float
    """Time of its last write, in seconds of the store's clock."""


class ObjectStore:
    """A folder of objects. Every method retries brief failures of the store, then raises `LockstepError`."""

    def __init__(self, url: StoreUrl) -> None:
        self.url = url

    @cached_property
    def opened(self) -> "tuple[fs.FileSystem, str]":
        """Arrow's file system, and the URL's path in it."""
        from pyarrow import fs

        system, path = with_retries(self.url, lambda: fs.FileSystem.from_uri(self.url.for_arrow()))
        return system, path.rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self.opened[1]}/{name}"

    def list(self) -> dict[str, ObjectInfo]:
        """List the objects below the URL, maybe none, by relative name; one request per 1,000."""
        from pyarrow import fs

        selector = fs.FileSelector(self.opened[1], recursive=True)
        try:
            infos = with_retries(self.url, lambda: self.opened[0].get_file_info(selector))
        except FileNotFoundError:
            return {}
        start = len(self.opened[1]) + 1
        return {
            info.path[start:]: ObjectInfo(info.size, info.mtime.timestamp() if info.mtime else 0.0)
            for info in infos
            if info.type == fs.FileType.File
        }

    def read(self, name: str) -> bytes:
        """Read a small object; FileNotFoundError if it does not exist."""

        def read() -> bytes:
            with self.opened[0].open_input_stream(self._path(name), compression=None) as file:
                return bytes(file.read())

        return with_retries(self.url.child(name), read)

    def download(self, name: str, target: Path, *, sha256: str | None = None) -> None:
        """Download an object to `target` atomically; once more if its digest is not `sha256`.

        Raises FileNotFoundError if it does not exist, `LockstepError` if its digest is wrong twice.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        temp = target.with_name(target.name + ".part")

        def copy() -> str:
            digest = hashlib.sha256()
            with self.opened[0].open_input_stream(self._path(name), compression=None) as file, temp.open("wb") as out:
                while chunk := file.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    out.write(chunk)
            return digest.hexdigest()

        try:
            for _ in range(2):
                digest = with_retries(self.url.child(name), copy)
                if sha256 in (None, digest):
                    temp.replace(target)
                    return
            raise LockstepError(
                str(self.url.child(name)), found=f"{temp.stat().st_size} bytes of SHA-256 {digest[:12]}, twice",
                expected=f"an object of SHA-256 {str(sha256)[:12]}", exit_code=1,
                fix="it was damaged or replaced: rebuild the cache, which uploads it again",
            )  # fmt: skip
        finally:
            temp.unlink(missing_ok=True)

    def upload(self, source: Path | bytes, name: str) -> None:
        """Store a file, or bytes, atomically: one request; for a large file one per 10 MB, and two more."""

        def send() -> None:
            with (
                io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file,
                self.opened[0].open_output_stream(self._path(name), compression=None) as out,
            ):
                shutil.copyfileobj(file, out, _CHUNK_BYTES)

        with_retries(self.url.child(name), send)

    def remove(self, names: Collection[str]) -> None:
        """Remove objects; missing ones are ignored."""

        def remove_object(name: str) -> None:
            with suppress(FileNotFoundError):
                with_retries(self.url.child(name), lambda: self.opened[0].delete_file(self._path(name)))

        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            list(pool.map(remove_object, names))
