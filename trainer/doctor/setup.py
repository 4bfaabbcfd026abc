"""What is checked: a cache and a configuration, loaded and checked before TensorFlow is imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xtts.shared.cache.cache_copy import CacheCopy
from xtts.shared.cache.cache_spec import SPLITS, CacheSpec, Split, load_spec
from xtts.shared.cache.quick_check import quick_check
from xtts.shared.cache.stats import ClipLengths, read_lengths
from xtts.shared.config import Config, DataConfig
from xtts.shared.config_flags import resolve
from xtts.shared.errors import LockstepError, build_command
from xtts.shared.feature_settings import follow_text
from xtts.shared.storage.urls import Location, location
from xtts.shared.system.folder_lock import ReadLock
from xtts.trainer.data.batch_sizes import batch_sizes, bucket_numbers, for_corpus


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The cache and configuration from the command line."""

    cache: Path
    spec: CacheSpec
    config: Config
    lengths: ClipLengths
    """Of the clips in the index."""
    sizes: dict[int, int]
    """B by bucket number."""
    lock: ReadLock
    """Keeps the files of the cache while it is checked, whatever is built there."""

    def bucket_numbers(self, split: Split) -> list[int]:
        """Numbers of the buckets with clips in a split."""
        return bucket_numbers(self.spec, split)


def _local(given: Location, data: DataConfig) -> Path:
    if isinstance(given, Path):
        return given
    copy = CacheCopy(given, stage=data.stage)
    copy.fetch(copy.open().shards(*SPLITS))
    return copy.folder


def load_setup(
    config: Sequence[str], assignments: Sequence[str], flags: Mapping[str, object], given: str | Path
) -> Setup:
    """Resolve and check everything that must be valid before measuring; all of a remote cache is copied first."""
    resolved = resolve(config, assignments, flags)
    cache = _local(location(given), resolved.data)
    lock = ReadLock(cache)
    spec = load_spec(cache)
    resolved = for_corpus(follow_text(resolved, spec.features), spec)
    if not spec.fixed_length:
        raise LockstepError(
            str(cache), found="unpadded clips: every new shape is traced and compiled, nothing is locked",
            expected="shapes.pad_to_fixed_length: true", fix=build_command(cache),
        )  # fmt: skip
    quick_check(cache, spec)
    sizes, lengths = batch_sizes(spec, resolved.training), read_lengths(cache / spec.index_file)
    return Setup(cache=cache, spec=spec, config=resolved, lengths=lengths, sizes=sizes, lock=lock)
