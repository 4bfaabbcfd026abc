"""Whole shards read without TensorFlow."""

from collections.abc import Iterator
from pathlib import Path

from xtts.shared.cache.cache_spec import Bucket, CacheSpec
from xtts.shared.cache.records import Record, parse_example, unframe


def read_shard(path: Path, spec: CacheSpec, bucket: Bucket) -> Iterator[tuple[memoryview, Record]]:
    """(serialized `tf.train.Example`, the record in it) of each clip of a shard, in the order in which they are stored.

    Raises OSError where the file cannot be read, CorruptRecord at the first record that is not what was written.
    """
    for payload in unframe(memoryview(path.read_bytes()), limit_bytes=spec.record_bytes_limit(bucket)):
        yield payload, parse_example(payload, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
