"""The local folder that stands for a cache in an object store: the small files at once, shards as they are needed."""

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from xtts.shared.cache.cache_spec import SPEC_FILE, CacheSpec, Shard, load_spec
from xtts.shared.cache.stage_folder import StageFolder, disk_error, stage_root
from xtts.shared.errors import LockstepError
from xtts.shared.storage.failures import called
from xtts.shared.storage.object_store import REQUESTS_AT_ONCE, ObjectStore
from xtts.shared.storage.urls import Location, StoreUrl, location
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import in_turn, without_readers

DEFAULT_GB = 100
_COPY_LOCK = ".copying"


class CacheCopy:
    """A remote cache, and the folder of what is here of it; one folder for each URL."""

    def __init__(self, url: StoreUrl, *, stage: str | None = None, stage_gb: int = DEFAULT_GB) -> None:
        self.url, self._store = url, ObjectStore(url)
        self.stage = StageFolder(stage_root(stage).absolute(), stage_gb * 10**9)
        self.folder = self.stage.root / f"{url.name}-{url.digest}"

    def open(self) -> CacheSpec:
        """Bring `cache.json`, the index and the tokenizer; a `LockstepError` where there is no finished cache."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with in_turn(self.folder / _COPY_LOCK), self.named():
                for attempt in range(2):  # a build may replace the small files between the two requests
                    spec = self._read_spec()
                    try:
                        self._bring(spec.index_file, spec.index_sha256)
                        self._bring(spec.tokenizer_file, spec.tokenizer_sha256)
                        self._drop_replaced(spec)
                        return spec
                    except FileNotFoundError as error:
                        if attempt:
                            where = str(self.url.child(Path(str(error.filename or spec.index_file)).name))
                            raise LockstepError(where, found="missing", expected="a file of the cache") from None
        except OSError as error:
            raise disk_error(self.folder, error) from None
        raise AssertionError

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

    def _drop_replaced(self, spec: CacheSpec) -> None:
        """Remove the small files of earlier builds, unless a run on one of them still reads the folder."""
        with without_readers(self.folder) as free:
            for pattern in ("index*.parquet", "tokenizer*.json") if free else ():
                for path in self.folder.glob(pattern):
                    if path.name not in (spec.index_file, spec.tokenizer_file):
                        path.unlink(missing_ok=True)

    def path(self, shard: Shard) -> Path:
        """Where the copy of a shard lies, if there is one."""
        return self.folder / shard.file

    def copy_one(self, shard: Shard, *, keep: Collection[Path] = ()) -> bool:
        """Copy a shard, checked by size and digest; False where it was not possible now (see `StageFolder`)."""
        try:
            with self.stage.new_copy(self.path(shard), shard.bytes, keep=keep) as out:
                if out is None:
                    return self.path(shard).exists()
                self._store.checked_copy_to(shard.file, out, sha256=shard.sha256, size=shard.bytes)
            return True
        except FileNotFoundError:
            fix = "build the cache again, which stores it once more"
            where = str(self.url.child(shard.file))
            raise LockstepError(where, found="missing", expected=f"{shard.bytes} bytes", fix=fix, exit_code=1) from None
        except OSError as error:
            raise disk_error(self.stage.root, error) from None

    def fetch(self, shards: Iterable[Shard]) -> None:
        """Have all of these here until this process ends; a `LockstepError` where they are more than the bound."""
        wanted = list(shards)
        size = sum(shard.bytes for shard in wanted)
        if size > self.stage.limit_bytes:
            raise self.too_small(size)
        keep = {self.path(shard) for shard in wanted}
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            done = list(pool.map(lambda shard: self.copy_one(shard, keep=keep), wanted))
        if not all(done) or not self.stage.pin(keep):
            raise LockstepError(
                str(self.stage.root), found="no room: other processes use the copies in it, or are making these",
                fix="wait for them to end, or raise data.stage_gb", exit_code=1,
            )  # fmt: skip

    def too_small(self, size: int) -> LockstepError:
        """The error of a bound below so many bytes."""
        return LockstepError(
            "data.stage_gb", found=f"{self.stage.limit_bytes / 10**9:g}, which holds too few shards of {self.url}",
            expected=f"{-(-size // 10**9)} or more", fix="raise it, or train on a copy of the cache in a local folder",
        )  # fmt: skip

    @contextmanager
    def borrowed(self, shard: Shard) -> Iterator[None]:
        """A shard as it is in the store, however damaged, for as long as the block takes; none where it is missing.

        For a folder of this process alone.
        """
        with suppress(FileNotFoundError):
            self._store.download(shard.file, self.path(shard))
        try:
            yield
        finally:
            self.path(shard).unlink(missing_ok=True)

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
