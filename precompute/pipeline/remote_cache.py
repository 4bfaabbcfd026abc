"""A cache in an object store: copy it into a local folder, build there, and store it, `cache.json` last.

Names contain digests: objects other than `cache.json` never change, and only new files are sent.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import SPEC_FILE, CacheSpec, is_of_a_build, spec_bytes
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE, ObjectInfo, ObjectStore
from xtts.shared.storage.urls import StoreUrl

KEPT_SECONDS = 86_400.0
"""Time that replaced objects stay, for readers and builders that began earlier."""


class RemoteCache:
    """A cache during a build."""

    def __init__(self, url: StoreUrl, folder: Path) -> None:
        self.url, self.folder, self._store = url, folder, ObjectStore(url)

    @cached_property
    def _objects(self) -> dict[str, ObjectInfo]:
        """The objects at the beginning of the build."""
        return self._store.list()

    def fetch(self, *, shards: bool) -> None:
        """Make the folder a copy of the cache; what is damaged or missing there is built again."""
        if SPEC_FILE not in self._objects:
            (self.folder / SPEC_FILE).unlink(missing_ok=True)
            return
        copy = CacheCopy(self.url, folder=self.folder)
        with suppress(LockstepError):
            spec = copy.open()
            copy.fetch(spec.shards() if shards else [])

    def store(self, spec: CacheSpec, files: Mapping[str, Path]) -> None:
        """Send the files that the store does not hold, then replace `cache.json`."""
        stored = self._objects
        new = [name for name, path in files.items() if name not in stored or stored[name].bytes != path.stat().st_size]
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            list(pool.map(lambda name: self._store.upload(files[name], name), new))
        self._store.upload(spec_bytes(spec), SPEC_FILE)

    def sweep(self, before: CacheSpec | None, now: CacheSpec) -> None:
        """Remove the objects of builds that neither the `cache.json` before this build nor the new one lists.

        Only if the one before was there so long that readers and builders of its predecessor have ended, and only
        objects as old: a builder at work may have sent younger ones. By the store's clock.
        """
        objects = self._store.list()
        if SPEC_FILE not in self._objects or SPEC_FILE not in objects or before is None:
            return
        clock = objects[SPEC_FILE].modified
        if clock - self._objects[SPEC_FILE].modified < KEPT_SECONDS:
            return
        needed = {SPEC_FILE, *before.files, *now.files}
        old = [name for name, info in objects.items() if clock - info.modified >= KEPT_SECONDS]
        self._store.remove([name for name in old if name not in needed and is_of_a_build(name)])
