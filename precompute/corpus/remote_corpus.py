"""A corpus in an object store, and the local folder that stands for it.

Lists and texts are copied there. For each audio object there is an empty file of its size, whose time is made of the
etag: layouts find it, and a changed object is noticed as any changed file is (see `fetched_objects`). Tar and
Parquet files are copied whole.
"""

import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from xtts.precompute.corpus.corpus_entries import CorpusEntry
from xtts.precompute.corpus.corpus_files import is_audio
from xtts.precompute.corpus.fetched_objects import FETCHED, time_of
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import Identity, Listed, ObjectStore
from xtts.shared.storage.urls import StoreUrl
from xtts.shared.system import atomic_files

_NOTES = ".objects.json"
_QUESTIONS_AT_ONCE = 32
_LEFT_SECONDS = 3600.0
"""What is in the folder of fetched files for longer was left by a process that was killed."""


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


def _listed(url: StoreUrl, folder: Path) -> tuple[StoreUrl, Path, dict[str, Listed]]:
    """(URL of a corpus, its local folder, its objects); the URL of one object is one of the folder that it is in."""
    listed = ObjectStore(url).list()
    if listed:
        return url, folder, listed
    beside = ObjectStore(url.parent).list() if url.parent.name else {}
    if url.name not in beside:
        raise LockstepError(str(url), found="no objects", expected="a corpus: a folder, or a file that lists clips")
    return url.parent, url.parent.local_folder("corpora"), beside


def _bring_up_to_date(store: ObjectStore, folder: Path, listed: Mapping[str, Listed]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FETCHED).mkdir(exist_ok=True)
    for left in (folder / FETCHED).iterdir():
        if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
            left.unlink(missing_ok=True)
    known, notes = _read_notes(folder), dict[str, tuple[int, float, str]]()
    plain = {name: one for name, one in listed.items() if is_plain(name)}
    new = {name: one for name, one in plain.items() if known.get(name, (-1, -1.0, ""))[:2] != (one.bytes, one.modified)}
    with ThreadPoolExecutor(_QUESTIONS_AT_ONCE) as pool:
        identities = dict(zip(new, pool.map(store.identity, new), strict=True))
    for name, one in plain.items():
        identity = identities[name] if name in new else Identity(one.bytes, known[name][2])
        if identity is not None:  # else it went a moment ago
            _put(store, folder / name, name, identity, again=name in new)
            notes[name] = (identity.bytes, one.modified, identity.etag)
    for name in known.keys() - notes.keys():
        (folder / name).unlink(missing_ok=True)
    atomic_files.write(folder / _NOTES, json.dumps(notes).encode())


def is_plain(name: str) -> bool:
    """Whether a name is a path below a folder, and no hidden one."""
    return all(part and not part.startswith(".") for part in name.split("/"))


def _read_notes(folder: Path) -> dict[str, tuple[int, float, str]]:
    """Name to size, time and etag of the objects as they were before."""
    try:
        read = json.loads((folder / _NOTES).read_text(encoding="utf-8"))
        return {str(name): (int(size), float(time), str(etag)) for name, (size, time, etag) in read.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _put(store: ObjectStore, path: Path, name: str, identity: Identity, *, again: bool) -> None:
    """The file that stands for an object."""
    if not again and path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_audio(name):
        path.write_bytes(b"")
        os.truncate(path, identity.bytes)
    else:
        store.download(name, path)
    os.utime(path, ns=(time_of(identity), time_of(identity)))
