"""Batches from shards without TensorFlow, for steps that were exported: records of given positions."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec, Split
from xtts.shared.cache.shard_reader import RecordReader


class Input(NamedTuple):
    """A field of a batch, or another argument of an exported step."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class StoredBatches:
    """Reads clips by bucket, shard and record."""

    def __init__(self, cache: Path, spec: CacheSpec) -> None:
        self._cache, self._spec = cache, spec
        self._reader = RecordReader(mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)

    def read(
        self, bucket: int, split: Split, clips: Iterable[tuple[int, int]], fields: Sequence[Input]
    ) -> list[np.ndarray]:
        """Read the (shard, record) of a bucket's clips: an array for each of `fields`; rows without a clip are zeros.

        Raises:
            LockstepError: A shard cannot be read.
        """
        shards = self._spec.buckets[bucket].shards(split)
        records = [self._reader.read(self._cache / shards[shard].file, record) for shard, record in clips]
        arrays = []
        for field in fields:
            array = np.zeros(field.shape, field.dtype)
            for row, record in enumerate(records):
                array[row] = getattr(record if hasattr(record, field.name) else record.crop, field.name)
            arrays.append(array)
        return arrays
