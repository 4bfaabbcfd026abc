"""A cache in an object store: copy it into a local folder, build there, and store it, `cache.json` last.

Names contain digests: objects other than `cache.json` never change, and only new files are sent.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from xtts.precompute.pipeline.build_request import BuildRequest
from xtts.precompute.workers.worker_pool import WorkerPool
from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import SPEC_FILE, CacheSpec, is_of_a_build, spec_bytes
from xtts.shared.errors import LockstepError
from xtts.shared.storage.failures import rename_in_errors
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE, ObjectInfo, ObjectStore
from xtts.shared.storage.urls import PathOrUrl

KEPT_SECONDS = 86_400.0
"""Time that replaced objects stay, for readers and builders that began earlier."""


@contextmanager
def request_at(at: PathOrUrl, request_of: Callable[[Path], BuildRequest], pool: WorkerPool) -> Iterator[BuildRequest]:
    """Yield the request for a folder or, with a copy of the cache in a folder, for an object store.

    request_of: returns the request for a folder; only then are shards copied. Errors name the URL, also those inside.
    """
    if isinstance(at, Path):
        yield request_of(at)
        return
    if pool.spans_machines:
        fix = "build into a folder that all machines see, and copy it there"
        raise LockstepError("--engine ray", found=f"--cache {at}", expected="a folder", fix=fix)
    store, folder, previous = ObjectStore(at), at.local_folder("builds"), None
    copy, objects = CacheCopy(at, folder=folder), store.list()
    with rename_in_errors(folder, str(at)):
        if SPEC_FILE not in objects:
            (folder / SPEC_FILE).unlink(missing_ok=True)
        else:
            with suppress(LockstepError):  # what is damaged or missing is rebuilt
                previous = copy.open()
        request = request_of(folder)
        with suppress(LockstepError):
            copy.fetch(previous.shards() if previous else [])
        yield replace(request, publish=partial(_publish, store, objects, previous))


def _publish(
    store: ObjectStore, objects: Mapping[str, ObjectInfo], previous: CacheSpec | None, spec: CacheSpec,
    files: Mapping[str, Path],
) -> None:  # fmt: skip
    """Send the files that the store does not hold, then replace `cache.json`, and remove objects of earlier builds.

    objects, previous: those before the build.
    """
    new = [name for name, path in files.items() if name not in objects or objects[name].bytes != path.stat().st_size]
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        list(pool.map(lambda name: store.upload(files[name], name), new))
    if spec != previous:
        store.upload(spec_bytes(spec), SPEC_FILE)
    if previous is not None:
        _sweep(store, objects[SPEC_FILE].modified, {SPEC_FILE, *previous.files, *spec.files})


def _sweep(store: ObjectStore, replaced: float, needed: Collection[str]) -> None:
    """Remove the objects of builds that neither the `cache.json` before this build nor the new one lists.

    Only if the one before, written at `replaced`, was in place so long that readers and builders of its predecessor
    have ended, and only objects of that age: a builder at work may have sent newer ones. Times are the store's.
    """
    objects = store.list()
    if SPEC_FILE not in objects or objects[SPEC_FILE].modified - replaced < KEPT_SECONDS:
        return
    clock = objects[SPEC_FILE].modified
    old = [name for name, info in objects.items() if clock - info.modified >= KEPT_SECONDS]
    store.remove([name for name in old if name not in needed and is_of_a_build(name)])
