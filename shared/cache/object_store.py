"""Folders of object stores: copied down for a command, and a cache copied up after its build, by `pyarrow.fs`.

What commands call works on folders. Copies are kept: only what is missing or has changed is copied again.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

import click

from xtts.shared.cache.cache_spec import SPEC_FILE, is_of_a_build, load_spec, replaced_files
from xtts.shared.cache.quick_check import file_sha256
from xtts.shared.errors import LockstepError, build_command, counted_noun
from xtts.shared.system.folder_lock import WRITER_FILE, ReadLock, blocking_lock, without_readers
from xtts.shared.system.machine import user_cache

if TYPE_CHECKING:
    from pyarrow import fs

Place = str | os.PathLike[str]
"""A local path, or the URL of a folder in an object store."""
_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
KEPT_SECONDS = 86_400.0
"""Time that replaced objects stay, for copies and builds that began earlier."""
_REQUESTS_AT_ONCE, _CHUNK_BYTES = 8, 2**24
_ABSENT = (-1, 0)
_SECRET = re.compile(r":.*@|\?.*(secret|password|token|key=|sig=)", re.IGNORECASE)
_UNSAFE_NAME = re.compile(r"(^|/)(\.|/|$)")
"""Object names that are hidden or lead out of a folder."""
_KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS or AZURE_STORAGE_..."
_PROBLEMS = (
    (r"^\[errno (?!2\])", "the copy fails", "free some space, or set XDG_CACHE_HOME to another folder for copies"),
    ("no_?such_?bucket|container_?not_?found", "no such bucket", "check its name and the region"),
    ("access_?denied|access_?key_?id|signature|status 403|permission_?denied|unauthen", "access denied", _KEYS),
    ("no such host|status 301|permanent_redirect", "the bucket is in another region", "set AWS_REGION"),
    ("network_connection|could not (resolve|connect)|unavailable|timed out", "no answer", "check AWS_ENDPOINT_URL"),
    ("does not exist|no such file", "missing", "run this again; if a cache still lacks it, build that with --fresh"),
    ("", "the store fails", "run the same command again"),
)
"""(pattern of Arrow's message, problem, fix)."""


def is_url(place: Place) -> bool:
    """Whether a place is a URL: a path with this would have an empty component."""
    return "://" in os.fspath(place)


def copy_of(place: Place, folder: str = "caches") -> Path:
    """Return a path itself; for a URL its copy, as it is or to be made, in this folder of the user's cache."""
    if not is_url(place):
        return Path(place)
    digest, (base, _, _) = hashlib.sha256(str(place).encode()).hexdigest()[:12], str(place).partition("?")
    return user_cache().absolute() / folder / digest / Path(base).name


def local_cache(place: Place) -> Path:
    """Return the folder of a cache; for a URL that of its copy, now whole."""
    folder = copy_of(place)
    if is_url(place) and not _copy_cache(store := ObjectStore(str(place)), folder):
        fix = build_command(place, corpus="<corpus>", config="<size>")
        raise LockstepError(f"{store.url}/{SPEC_FILE}", found="no finished cache", expected="a cache", fix=fix)
    return folder


def local_build(place: Place, *, fresh: bool) -> Path:
    """Return the folder to build a cache in; for a URL a kept one, with what is newer in the store unless `fresh`."""
    folder = copy_of(place, "builds")
    if is_url(place):
        own = (folder / SPEC_FILE).stat().st_mtime if (folder / SPEC_FILE).exists() else -1.0
        _copy_cache(ObjectStore(str(place)), folder, since=float("inf") if fresh else own)
    return folder


def upload_cache(folder: Path, place: Place) -> None:
    """Store the new files of a cache, `cache.json` last, which replaces the old cache; do nothing without a URL."""
    if not is_url(place):
        return
    store, replaced = ObjectStore(str(place)), folder.with_name("replaced.json")
    with ReadLock(folder):
        objects = store.list()
        new = [name for name in load_spec(folder).files if not _is_there(folder / name, objects.get(name, _ABSENT))]
        _for_each(lambda name: store.upload(folder / name, name), new, f"{store.url}: uploading")
        if SPEC_FILE in objects:
            store.download(SPEC_FILE, replaced)
        listed = [path.read_bytes() for path in (folder / SPEC_FILE, replaced) if path.exists()]
        if SPEC_FILE not in objects or len(set(listed)) > 1:
            store.upload(folder / SPEC_FILE, SPEC_FILE)
    old = [name for name, (_, modified) in objects.items() if time.time() - modified / 1e9 >= KEPT_SECONDS]
    if SPEC_FILE in old:  # else copies of the cache before the replaced one may still be under way
        for name in old:
            if is_of_a_build(name) and not any(name.encode() in text for text in listed):
                with _errors_explained(f"{store.url}/{name}"):
                    store.system.delete_file(f"{store.root}/{name}")


def local_corpus(place: Place) -> Path:
    """Return the path of a corpus; for a URL that of its copy, now up to date."""
    folder = copy_of(place, "corpora")
    if is_url(place):
        store = ObjectStore(str(place))
        objects = {name: info for name, info in store.list().items() if not _UNSAFE_NAME.search(name)}
        if not objects:
            raise LockstepError(store.url, found="no objects", expected="the folder of a corpus")
        names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
        for name in names - objects.keys():
            (folder / name).unlink()
        _fetch(store, folder, objects, {})
    return folder


def _copy_cache(store: "ObjectStore", folder: Path, *, since: float = -1.0) -> bool:
    """Copy a cache whole if it was stored after `since`; return whether the store has one."""
    objects = store.list()
    if SPEC_FILE not in objects or objects[SPEC_FILE][1] / 1e9 <= since:
        return SPEC_FILE in objects
    with _errors_explained(store.url):
        folder.mkdir(parents=True, exist_ok=True)
        with blocking_lock(folder / WRITER_FILE):  # processes take turns, also with a build in this folder
            store.download(SPEC_FILE, folder / SPEC_FILE)
            os.utime(folder / SPEC_FILE, (0, 0))  # older than the store's until all is there
            spec = load_spec(folder, named=store.url)
            digests = spec.small_files | {shard.file: shard.sha256 for shard in spec.shards()}
            _fetch(store, folder, {name: objects.get(name, _ABSENT) for name in digests}, digests)
            os.utime(folder / SPEC_FILE)
            with without_readers(folder) as free:  # a run may still read files of the previous build
                for path in replaced_files(folder, spec) if free else ():
                    path.unlink(missing_ok=True)
    return True


def _fetch(store: "ObjectStore", folder: Path, objects: dict[str, tuple[int, int]], digests: dict[str, str]) -> None:
    """Download the objects that the folder lacks by name, size and, for those without a digest, time."""

    def fetch(name: str) -> None:
        store.download(name, folder / name, sha256=digests.get(name, ""))
        os.utime(folder / name, ns=(objects[name][1],) * 2)

    new = [name for name, info in objects.items() if not _is_there(folder / name, info, timed=not digests)]
    _for_each(fetch, new, f"{store.url}: copying to {folder}")


def _is_there(path: Path, info: tuple[int, int], *, timed: bool = False) -> bool:
    """Whether a file has the size and, if `timed`, the time of an object."""
    size, modified = info
    return path.is_file() and path.stat().st_size == size and (not timed or path.stat().st_mtime_ns == modified)


def _for_each(action: Callable[[str], object], names: Sequence[str], what: str) -> None:
    """Call the action for every file, several at once, and report it."""
    if names:
        click.echo(f"{what} ({counted_noun(len(names), 'file')})", err=True)
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            list(pool.map(action, names))


class ObjectStore:
    """The objects below one URL; what fails is a `LockstepError`."""

    def __init__(self, url: str) -> None:
        self.url = url.partition("?")[0].rstrip("/")
        self.system, self.root = open_store(url)

    def list(self) -> dict[str, tuple[int, int]]:
        """List the objects, maybe none: relative name to size and time of the last write in nanoseconds."""
        from pyarrow import fs

        infos = list[fs.FileInfo]()
        with _errors_explained(self.url), suppress(FileNotFoundError):  # not `allow_not_found`: it hides a wrong bucket
            infos = self.system.get_file_info(fs.FileSelector(self.root, recursive=True))
        files = [info for info in infos if info.type == fs.FileType.File]
        return {info.path[len(self.root) + 1 :]: (info.size, info.mtime_ns or 0) for info in files}

    def download(self, name: str, target: Path, *, sha256: str = "") -> None:
        """Download an object to `target` atomically, if its digest is `sha256`."""
        temp = target.with_name(target.name + ".part")
        with _errors_explained(f"{self.url}/{name}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with self.system.open_input_stream(f"{self.root}/{name}", compression=None) as file, temp.open("wb") as out:
                shutil.copyfileobj(file, out, _CHUNK_BYTES)
            if sha256 and file_sha256(temp) != sha256:
                fix = "delete this object, and build the cache with --fresh"
                raise LockstepError(f"{self.url}/{name}", found="damaged (SHA-256)", fix=fix, exit_code=1)
            temp.replace(target)

    def upload(self, source: Path, name: str) -> None:
        """Store a file: one request; for a large file one per 10 MB, and two more."""
        with _errors_explained(f"{self.url}/{name}"), source.open("rb") as file:
            with self.system.open_output_stream(f"{self.root}/{name}", compression=None) as out:
                shutil.copyfileobj(file, out, _CHUNK_BYTES)


def open_store(url: str) -> "tuple[fs.FileSystem, str]":
    """Return Arrow's file system and the URL's path in it; secrets are refused, as URLs end up in logs."""
    from pyarrow import fs

    (scheme, _, rest), (base, _, query) = url.partition("://"), url.partition("?")
    shown = f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"
    names_bucket = scheme in _SCHEMES and rest[:1] not in ("", "/")
    if not names_bucket or _SECRET.search(rest):
        found, fix = ("credentials in the URL", _KEYS) if names_bucket else ("no URL of a bucket", "")
        raise LockstepError(shown, found=found, expected=f"{' or '.join(_SCHEMES)}://BUCKET/FOLDER", fix=fix)
    options = dict(parse_qsl(query))
    if scheme == "s3":
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if region or "endpoint_override" in options or "AWS_ENDPOINT_URL" in os.environ:
            options.setdefault("region", region or "us-east-1")
        options.setdefault("allow_delayed_open", "true")  # a small object is one request
    elif scheme in ("gs", "gcs"):
        options.setdefault("retry_limit_seconds", "30")  # Arrow's own is 15 minutes
    with _errors_explained(shown):
        system, path = fs.FileSystem.from_uri(f"{base}?{urlencode(options)}")
    return system, path.rstrip("/")


@contextmanager
def _errors_explained(url: str) -> Iterator[None]:
    """Turn an error of a store, or of the local disk, into a `LockstepError`."""
    try:
        yield
    except (OSError, ValueError, NotImplementedError) as error:
        problem, fix = next(row[1:] for row in _PROBLEMS if re.search(row[0], str(error), re.IGNORECASE))
        text, code = str(error).partition("\n")[0][:200], 1 if problem == "missing" else 2
        raise LockstepError(url, found=f"{problem} ({text})", fix=fix, exit_code=code) from None
