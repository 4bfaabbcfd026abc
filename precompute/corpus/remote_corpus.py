"""Copying a corpus from an object store to a local folder.

A copy has the size and modification time of its object: a file with both is not downloaded again.
"""

import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from xtts.precompute.corpus.corpus_entries import CorpusEntry
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE, ObjectInfo, ObjectStore
from xtts.shared.storage.urls import StoreUrl


def with_folders(entries: list[CorpusEntry]) -> tuple[list[CorpusEntry], dict[Path, StoreUrl]]:
    """Update the local copies of remote corpora; return the entries with these folders, and the URL of each folder."""
    local, urls = list[CorpusEntry](), dict[Path, StoreUrl]()
    for entry in entries:
        if entry.url is None:
            local.append(entry)
            continue
        url, folder, objects = _objects(entry.url, entry.data)
        _update(ObjectStore(url), folder, objects)
        urls[folder.absolute()] = url
        data = folder if url == entry.url else folder / entry.url.name
        local.append(entry.model_copy(update={"data": data}))
    return local, urls


def _objects(url: StoreUrl, folder: Path) -> tuple[StoreUrl, Path, dict[str, ObjectInfo]]:
    """Return (URL of a corpus, its local folder, its objects by name); for a URL of one object, those of its folder."""
    objects = ObjectStore(url).list()
    if objects:
        return url, folder, objects
    siblings = ObjectStore(url.parent).list() if url.parent.name else {}
    if url.name not in siblings:
        raise LockstepError(str(url), found="no objects", expected="a corpus: a folder, or a file that lists clips")
    return url.parent, url.parent.local_folder("corpora"), siblings


def _update(store: ObjectStore, folder: Path, objects: Mapping[str, ObjectInfo]) -> None:
    """Download new and changed objects into the folder, and delete files without an object."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = re.compile(r"(^|/)(\.|/|$)")  # or leading out of the folder
    wanted = {name: item for name, item in objects.items() if not hidden.search(name)}
    for path in [path for path in folder.rglob("*") if not path.is_dir()]:
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()

    def update(name: str) -> None:
        path, times = folder / name, (round(wanted[name].modified * 10**9),) * 2
        if path.exists() and (path.stat().st_size, path.stat().st_mtime_ns) == (wanted[name].bytes, times[0]):
            return
        try:
            store.download(name, path)
            os.utime(path, ns=times)
        except FileNotFoundError:  # deleted since the listing
            path.unlink(missing_ok=True)

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        list(pool.map(update, wanted))
