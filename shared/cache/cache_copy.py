"""Local copies of caches in object stores: the small files, and the requested shards."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from xtts.shared.cache.cache_spec import INDEX_FILE, SPEC_FILE, CacheSpec, Shard, load_spec, replaced_files
from xtts.shared.errors import LockstepError, build_command
from xtts.shared.storage.failures import rename_in_errors
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE, ObjectStore
from xtts.shared.storage.urls import PathOrUrl, StoreUrl, path_or_url
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import blocking_lock, without_readers
from xtts.shared.system.machine import user_cache

_COPY_LOCK = ".copying"


class CacheCopy:
    """A remote cache and the local folder of its files; one folder per URL."""

    def __init__(self, url: StoreUrl, *, stage: str | None = None, folder: Path | None = None) -> None:
        """Choose the folder: `folder` itself, else a folder in `stage` (`data.stage`) or in the user's cache."""
        self.url, self._store = url, ObjectStore(url)
        root = Path(stage).expanduser().absolute() if stage else user_cache() / "caches"
        self.folder = folder or root / f"{url.name}-{url.digest}"

    def open(self) -> CacheSpec:
        """Download `cache.json` and the small files; raises `LockstepError` if there is no finished cache."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with blocking_lock(self.folder / _COPY_LOCK), self.url_in_errors():
                spec = self._read_spec()
                for name, sha256 in spec.small_files.items():
                    self._download(name, sha256)
                with without_readers(self.folder) as free:  # a run may still read files of the previous build
                    for path in replaced_files(self.folder, spec) if free else ():
                        path.unlink(missing_ok=True)
                return spec
        except FileNotFoundError as error:
            url = self.url.child(Path(str(error.filename or INDEX_FILE)).name)
            raise LockstepError(str(url), found="missing", expected="a file of the cache") from None
        except OSError as error:
            raise self._disk_error(error) from None

    def _read_spec(self) -> CacheSpec:
        try:
            data = self._store.read(SPEC_FILE)
        except FileNotFoundError:
            objects = self._store.list()  # raises if there is no bucket
            found = f"no finished cache, although it holds {len(objects)} objects" if objects else "no objects"
            fix = build_command(self.url, corpus="<corpus>", config="<size>")
            raise LockstepError(str(self.url.child(SPEC_FILE)), found=found, expected="a cache", fix=fix) from None
        path = self.folder / SPEC_FILE
        if not path.exists() or path.read_bytes() != data:
            atomic_files.write(path, data)
        return load_spec(self.folder)

    def _download(self, name: str, sha256: str) -> None:
        if not (self.folder / name).exists():
            self._store.download(name, self.folder / name, sha256=sha256)

    def fetch(self, shards: Iterable[Shard]) -> None:
        """Download missing shards, each checked by its digest; processes take turns."""
        try:
            with blocking_lock(self.folder / _COPY_LOCK), ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                list(pool.map(self._fetch_shard, shards))
        except OSError as error:
            raise self._disk_error(error) from None

    def _fetch_shard(self, shard: Shard) -> None:
        try:
            self._download(shard.file, shard.sha256)
        except FileNotFoundError:
            url, fix = self.url.child(shard.file), "rebuild the cache, which uploads it again"
            expected = f"{shard.bytes} bytes"
            raise LockstepError(str(url), found="missing", expected=expected, fix=fix, exit_code=1) from None

    def _disk_error(self, error: OSError) -> LockstepError:
        return LockstepError(
            str(error.filename or self.folder), found=f"cannot be written ({error.strerror})",
            fix="free some space, or give another folder with --set data.stage=DIR", exit_code=1,
        )  # fmt: skip

    @contextmanager
    def borrowed(self, shard: Shard) -> Iterator[None]:
        """Download a shard, however damaged, and remove it at the end of the block; do nothing if it is missing.

        Only for a folder that no other process uses.
        """
        with suppress(FileNotFoundError):
            self._store.download(shard.file, self.folder / shard.file)
        try:
            yield
        finally:
            (self.folder / shard.file).unlink(missing_ok=True)

    def url_in_errors(self) -> AbstractContextManager[None]:
        """Make errors raised inside name the URL instead of the local folder."""
        return rename_in_errors(self.folder, str(self.url))


@contextmanager
def local_cache(
    given: PathOrUrl | str, needed: Callable[[CacheSpec], Iterable[Shard]] = lambda _: ()
) -> Iterator[Path]:
    """Yield the folder of a cache; for a URL, a local copy with its small files and the shards `needed`."""
    cache = path_or_url(given)
    if isinstance(cache, Path):
        yield cache
        return
    copy = CacheCopy(cache)
    with copy.url_in_errors():
        copy.fetch(needed(copy.open()))
        yield copy.folder
