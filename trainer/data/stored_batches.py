"""Batches from shards without TensorFlow, for steps that were exported: records of given positions."""

import mmap
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec, Split
from xtts.shared.cache.records import FRAME_BYTES, CorruptRecord, Record, parse_example, unframe
from xtts.shared.errors import LockstepError


class Input(NamedTuple):
    """A field of a batch, or another argument of an exported step."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class StoredBatches:
    """Reads clips by bucket, shard and record; shards are mapped into memory, and their records found once."""

    def __init__(self, cache: Path, spec: CacheSpec) -> None:
        self._cache, self._spec = cache, spec
        self._open = lru_cache(maxsize=None)(self._map)

    def _map(self, file: str) -> tuple[mmap.mmap, list[int]]:
        """A shard's bytes, and where each record and the last one's end lies in them."""
        with open(self._cache / file, "rb") as shard:
            data = mmap.mmap(shard.fileno(), 0, access=mmap.ACCESS_READ)
        starts = [0]
        while starts[-1] + FRAME_BYTES <= len(data):
            starts.append(starts[-1] + FRAME_BYTES + struct.unpack_from("<Q", data, starts[-1])[0])
        return data, starts

    def _record(self, bucket: int, split: Split, shard: int, record: int) -> Record:
        file = self._spec.buckets[bucket].shards(split)[shard].file
        try:
            data, starts = self._open(file)
            payload = next(unframe(memoryview(data[starts[record] : starts[record + 1]])))
            return parse_example(payload, mel_dtype=self._spec.mel_dtype, mel_channels=self._spec.mel_channels)
        except (OSError, IndexError, CorruptRecord) as error:
            fix = f"run xtts-precompute verify --cache {self._cache}"
            raise LockstepError(f"{self._cache / file}, record {record}", found=str(error), fix=fix) from None

    def read(
        self, bucket: int, split: Split, clips: Iterable[tuple[int, int]], fields: Sequence[Input]
    ) -> list[np.ndarray]:
        """Read the (shard, record) of a bucket's clips: an array for each of `fields`; rows without a clip are zeros.

        Raises:
            LockstepError: A shard cannot be read.
        """
        records = [self._record(bucket, split, shard, record) for shard, record in clips]
        arrays = []
        for field in fields:
            array = np.zeros(field.shape, field.dtype)
            for row, record in enumerate(records):
                array[row] = getattr(record if hasattr(record, field.name) else record.crop, field.name)
            arrays.append(array)
        return arrays
