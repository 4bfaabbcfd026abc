"""A corpus in an object store is copied whole into a local folder, and read there.

A copy has the size of its object and the time of the store: what has both is not fetched again.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from xtts.precompute.corpus.corpus_entries import CorpusEntry
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE, ObjectInfo, ObjectStore
from xtts.shared.storage.urls import StoreUrl


def with_folders(entries: list[CorpusEntry]) -> tuple[list[CorpusEntry], dict[Path, StoreUrl]]:
    """The entries with the local folders of remote corpora brought up to date, and the URL of each such folder."""
    found, urls = list[CorpusEntry](), dict[Path, StoreUrl]()
    for entry in entries:
        if entry.url is None:
            found.append(entry)
            continue
        url, folder, listed = _listed(entry.url, entry.data)
        _bring_up_to_date(ObjectStore(url), folder, listed)
        urls[folder.absolute()] = url
        found.append(replace(entry, data=folder if url == entry.url else folder / entry.url.name))
    return found, urls


def _listed(url: StoreUrl, folder: Path) -> tuple[StoreUrl, Path, dict[str, ObjectInfo]]:
    """(URL of a corpus, its local folder, its objects); the URL of one object is one of the folder that it is in."""
    listed = ObjectStore(url).list()
    if listed:
        return url, folder, listed
    beside = ObjectStore(url.parent).list() if url.parent.name else {}
    if url.name not in beside:
        raise LockstepError(str(url), found="no objects", expected="a corpus: a folder, or a file that lists clips")
    return url.parent, url.parent.local_folder("corpora"), beside


def _bring_up_to_date(store: ObjectStore, folder: Path, listed: Mapping[str, ObjectInfo]) -> None:
    """Make the folder's files those of the store."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {name: one for name, one in listed.items() if is_plain(name)}
    for path in [path for path in folder.rglob("*") if not path.is_dir()]:
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()

    def bring(name: str) -> None:
        path, times = folder / name, (round(wanted[name].modified * 10**9),) * 2
        if path.exists() and (path.stat().st_size, path.stat().st_mtime_ns) == (wanted[name].bytes, times[0]):
            return
        try:
            store.download(name, path)
            os.utime(path, ns=times)
        except FileNotFoundError:  # it went a moment ago
            path.unlink(missing_ok=True)

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        list(pool.map(bring, wanted))


def is_plain(name: str) -> bool:
    """Whether a name is a path below a folder, and no hidden one."""
    return all(part and not part.startswith(".") for part in name.split("/"))
