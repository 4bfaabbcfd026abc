"""The local folder that stands for a cache in an object store: the small files, and the shards that are asked for."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from xtts.shared.cache.cache_spec import INDEX_FILE, SPEC_FILE, CacheSpec, Shard, load_spec, replaced_files
from xtts.shared.errors import LockstepError
from xtts.shared.storage.failures import called
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE, ObjectStore
from xtts.shared.storage.urls import Location, StoreUrl, location
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import blocking_lock, without_readers
from xtts.shared.system.machine import user_cache

_COPY_LOCK = ".copying"


class CacheCopy:
    """A remote cache, and the folder of what is here of it; one folder for each URL."""

    def __init__(self, url: StoreUrl, *, stage: str | None = None, folder: Path | None = None) -> None:
        """stage: where the folder lies, as `data.stage` says; by default in the user's cache. folder: itself."""
        self.url, self._store = url, ObjectStore(url)
        root = Path(stage).expanduser().absolute() if stage else user_cache() / "caches"
        self.folder = folder or root / f"{url.name}-{url.digest}"

    def open(self) -> CacheSpec:
        """Bring `cache.json`, the index and the tokenizer; a `LockstepError` where there is no finished cache."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with blocking_lock(self.folder / _COPY_LOCK), self.named():
                spec = self._read_spec()
                self._bring(spec.index_file, spec.index_sha256)
                self._bring(spec.tokenizer_file, spec.tokenizer_sha256)
                with without_readers(self.folder) as free:  # a run may still read files of an earlier build
                    for path in replaced_files(self.folder, spec) if free else ():
                        path.unlink(missing_ok=True)
                return spec
        except FileNotFoundError as error:
            where = str(self.url.child(Path(str(error.filename or INDEX_FILE)).name))
            raise LockstepError(where, found="missing", expected="a file of the cache") from None
        except OSError as error:
            raise self._disk_error(error) from None

    def _read_spec(self) -> CacheSpec:
        try:
            data = self._store.read(SPEC_FILE)
        except FileNotFoundError:
            there = self._store.list()  # says so where there is no bucket
            found = f"no finished cache here, but {len(there)} other objects" if there else "no objects"
            fix = f"run xtts-precompute build --cache {self.url} --data <corpus> --config <size>"
            raise LockstepError(str(self.url.child(SPEC_FILE)), found=found, expected="a cache", fix=fix) from None
        path = self.folder / SPEC_FILE
        if not path.exists() or path.read_bytes() != data:
            atomic_files.write(path, data)
        return load_spec(self.folder)

    def _bring(self, name: str, sha256: str) -> None:
        if not (self.folder / name).exists():
            self._store.download(name, self.folder / name, sha256=sha256)

    def fetch(self, shards: Iterable[Shard]) -> None:
        """Copy those of these shards that are not here, each checked by its digest; two processes take turns."""
        try:
            with blocking_lock(self.folder / _COPY_LOCK), ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                list(pool.map(self._copy, shards))
        except OSError as error:
            raise self._disk_error(error) from None

    def _copy(self, shard: Shard) -> None:
        try:
            self._bring(shard.file, shard.sha256)
        except FileNotFoundError:
            fix = "build the cache again, which stores it once more"
            where = str(self.url.child(shard.file))
            raise LockstepError(where, found="missing", expected=f"{shard.bytes} bytes", fix=fix, exit_code=1) from None

    def _disk_error(self, error: OSError) -> LockstepError:
        return LockstepError(
            str(error.filename or self.folder), found=f"cannot be written ({error.strerror})",
            fix="make room, or give another folder with --set data.stage=DIR", exit_code=1,
        )  # fmt: skip

    @contextmanager
    def borrowed(self, shard: Shard) -> Iterator[None]:
        """A shard as it is in the store, however damaged, for as long as the block takes; none where it is missing.

        For a folder of this process alone.
        """
        with suppress(FileNotFoundError):
            self._store.download(shard.file, self.folder / shard.file)
        try:
            yield
        finally:
            (self.folder / shard.file).unlink(missing_ok=True)

    def named(self) -> AbstractContextManager[None]:
        """Errors about the local folder name the URL instead."""
        return called(self.folder, str(self.url))


@contextmanager
def local_cache(given: Location | str, wanted: Callable[[CacheSpec], Iterable[Shard]] = lambda _: ()) -> Iterator[Path]:
    """The folder of a cache; of one in an object store, a local one with its small files and the shards `wanted`."""
    cache = location(given)
    if isinstance(cache, Path):
        yield cache
        return
    copy = CacheCopy(cache)
    with copy.named():
        copy.fetch(wanted(copy.open()))
        yield copy.folder
