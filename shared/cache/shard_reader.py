"""Read records of a finished cache without TensorFlow, and compute the mels of records that name audio."""

from collections.abc import Iterator
from pathlib import Path

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.records import Record, parse_example, unframe


def read_shard(path: Path, spec: CacheSpec) -> Iterator[Record]:
    """Yield the records of a shard, in order.

    Raises OSError if the file cannot be read, CorruptRecord at the first record that is not what was written.
    """
    for payload in unframe(memoryview(path.read_bytes())):
        yield parse_example(payload, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
