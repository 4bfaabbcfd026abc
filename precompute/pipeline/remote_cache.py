"""A cache in an object store: copied into a local folder, built there, and stored again, `cache.json` last.

Names hold digests, so an object other than `cache.json` is never changed, and only new files are sent.
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

_KEPT_SECONDS = 86_400.0
"""How long replaced objects stay for readers and builders of before."""


class RemoteCache:
    """One cache, for one build."""

    def __init__(self, url: StoreUrl, folder: Path) -> None:
        self.url, self.folder, self._store = url, folder, ObjectStore(url)

    @cached_property
    def _there(self) -> dict[str, ObjectInfo]:
        """The objects at the beginning."""
        return self._store.list()

    def fetch(self, *, shards: bool) -> None:
        """Make the folder a copy of the cache; what is damaged or missing there is built again."""
        if SPEC_FILE not in self._there:
            (self.folder / SPEC_FILE).unlink(missing_ok=True)
            return
        copy = CacheCopy(self.url, folder=self.folder)
        with suppress(LockstepError):
            spec = copy.open()
            copy.fetch(spec.shards() if shards else [])

    def store(self, spec: CacheSpec, files: Mapping[str, Path]) -> None:
        """Send the files that the store does not hold, then replace `cache.json`."""
        stored = self._there
        new = [name for name, path in files.items() if name not in stored or stored[name].bytes != path.stat().st_size]
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            list(pool.map(lambda name: self._store.upload(files[name], name), new))
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
