"""A cache in an object store as a build sees it: what is there, what is sent, the one request that commits.

The build works in a local folder, which holds what an interrupted build continues from. A finished shard is sent under
its name with its digest and leaves the disk; the small files stay. An object is never changed but `cache.json`.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from xtts.shared.cache.cache_spec import SPEC_FILE, CacheSpec, is_of_a_build, load_spec, spec_bytes
from xtts.shared.errors import LockstepError
from xtts.shared.storage.failures import called
from xtts.shared.storage.object_store import Listed, ObjectStore
from xtts.shared.storage.urls import StoreUrl
from xtts.shared.system import atomic_files

_KEPT_SECONDS = 86_400.0
"""How long replaced objects stay for readers and builders of before."""


class RemoteCache:
    """One cache, for one build."""

    def __init__(self, url: StoreUrl, folder: Path) -> None:
        self.url, self.folder, self._store = url, folder, ObjectStore(url)

    @cached_property
    def _there(self) -> dict[str, Listed]:
        """The objects at the beginning."""
        return self._store.list()

    def mirror(self) -> None:
        """Make the small files of the folder those of the store, which another builder may have changed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / SPEC_FILE
        if SPEC_FILE not in self._there:
            path.unlink(missing_ok=True)
            return
        data = self._store.read(SPEC_FILE)
        if path.exists() and path.read_bytes() == data:
            return
        atomic_files.write(path, data)
        try:
            with called(self.folder, str(self.url)):
                spec = load_spec(self.folder)
            for name, sha256 in ((spec.index_file, spec.index_sha256), (spec.tokenizer_file, spec.tokenizer_sha256)):
                self._store.download(name, self.folder / name, sha256=sha256)
        except (LockstepError, FileNotFoundError):
            pass  # a broken cache is built again, and the survey says so

    def size(self, file: str) -> int | None:
        """Bytes of an object, or None where there is none."""
        found = self._there.get(file)
        return found.bytes if found else None

    def send(self, file: str, path: Path) -> None:
        """Store a finished file under its name in the cache, and remove it here; workers go on meanwhile."""
        if self.size(file) != path.stat().st_size:
            self._store.upload(path, file)
        path.unlink()

    def finish(self, spec: CacheSpec, small: Mapping[str, Path]) -> None:
        """Commit: send the small files, then replace `cache.json`."""
        for file, path in small.items():
            self._store.upload(path, file)
        self._store.write(SPEC_FILE, spec_bytes(spec))

    def sweep(self, before: CacheSpec | None, now: CacheSpec) -> None:
        """Remove the objects of builds that neither `cache.json` lists, that of before nor that of now.

        Only where the one of before was in force long enough for readers and builders of its predecessor to end, and
        only objects as old: a younger one may be of a builder at work. By the store's clock.
        """
        found = self._store.list()
        if SPEC_FILE not in self._there or SPEC_FILE not in found or before is None:
            return
        clock = found[SPEC_FILE].modified
        if clock - self._there[SPEC_FILE].modified < _KEPT_SECONDS:
            return
        needed = {SPEC_FILE, *before.files, *now.files}
        old = [name for name, one in found.items() if clock - one.modified >= _KEPT_SECONDS]
        self._store.remove([name for name in old if name not in needed and is_of_a_build(name)])
