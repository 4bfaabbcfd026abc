"""The objects below one URL, through `pyarrow.fs`: list, read, download, upload, remove.

Arrow is loaded with the first of them: a process that meets no URL does without.
"""

import hashlib
import io
import shutil
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from xtts.shared.errors import LockstepError
from xtts.shared.storage.failures import attempted
from xtts.shared.storage.urls import StoreUrl

REQUESTS_AT_ONCE = 8
_CHUNK_BYTES = 2**24
"""Of a download: each is a request."""


@dataclass(frozen=True)
class Listed:
    """What a listing says of an object."""

    bytes: int
    modified: float
    """When it was written, in seconds of the store's clock."""


class ObjectStore:
    """A folder of objects. Every method tries again where the store fails for a moment, then raises `LockstepError`."""

    def __init__(self, url: StoreUrl) -> None:
        self.url = url

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """(file system, path in it)."""
        from pyarrow import fs

        system, path = attempted(self.url, lambda: fs.FileSystem.from_uri(self.url.for_arrow()))
        return system, path.rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._opened[1]}/{name}"

    def list(self) -> dict[str, Listed]:
        """Every object below, by its name from here on; one request for each 1,000. Empty where there is none."""
        from pyarrow import fs

        selector = fs.FileSelector(self._opened[1], recursive=True)
        try:
            found = attempted(self.url, lambda: self._opened[0].get_file_info(selector))
        except FileNotFoundError:
            return {}
        start = len(self._opened[1]) + 1
        return {
            info.path[start:]: Listed(info.size, info.mtime.timestamp() if info.mtime else 0.0)
            for info in found
            if info.type == fs.FileType.File
        }

    def read(self, name: str) -> bytes:
        """A whole small object; FileNotFoundError where there is none."""

        def read() -> bytes:
            with self._opened[0].open_input_stream(self._path(name), compression=None) as file:
                return bytes(file.read())

        return attempted(self.url.child(name), read)

    def download(self, name: str, target: Path, *, sha256: str | None = None) -> None:
        """Put an object in its place on this machine, whole or not at all; once more where its digest is not `sha256`.

        Raises FileNotFoundError where there is none, `LockstepError` where its digest never is.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")

        def copy() -> str:
            digest = hashlib.sha256()
            with self._opened[0].open_input_stream(self._path(name), compression=None) as file, part.open("wb") as out:
                while chunk := file.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    out.write(chunk)
            return digest.hexdigest()

        try:
            for _ in range(2):
                digest = attempted(self.url.child(name), copy)
                if sha256 in (None, digest):
                    part.replace(target)
                    return
            raise LockstepError(
                str(self.url.child(name)), found=f"{part.stat().st_size} bytes of SHA-256 {digest[:12]}, twice",
                expected=f"an object of SHA-256 {str(sha256)[:12]}", exit_code=1,
                fix="it was damaged or replaced: build the cache again, which stores it once more",
            )  # fmt: skip
        finally:
            part.unlink(missing_ok=True)

    def upload(self, source: Path, name: str) -> None:
        """Store a file; nobody sees a part of it. One request, of larger files one for each 10 MB and two more."""
        self._send(lambda: source.open("rb"), name)

    def write(self, name: str, data: bytes) -> None:
        """Store a small object."""
        self._send(lambda: io.BytesIO(data), name)

    def _send(self, opened: Callable[[], BinaryIO], name: str) -> None:
        def send() -> None:
            with opened() as file, self._opened[0].open_output_stream(self._path(name), compression=None) as out:
                shutil.copyfileobj(file, out, _CHUNK_BYTES)

        attempted(self.url.child(name), send)

    def remove(self, names: Collection[str]) -> None:
        """Remove objects; one that is not there is no error."""

        def one(name: str) -> None:
            with suppress(FileNotFoundError):
                attempted(self.url.child(name), lambda: self._opened[0].delete_file(self._path(name)))

        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            list(pool.map(one, names))
