"""Mels of the previous cache, read back so that no audio is decoded twice."""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xtts.precompute.features.tables import unpack
from xtts.shared.cache.clip_index import ShardId
from xtts.shared.cache.records import FRAME_BYTES, CorruptRecord, Record, parse_example, unframe
from xtts.shared.errors import LockstepError, repair_command


class StoredMel(NamedTuple):
    """A mel of the previous cache: the file of its shard, and the position of its record in it."""

    path: Path
    position: int
    audio_sha256: str
    sums: tuple[float, float]
    """Sum of the mel, and of its squares."""


STORED_COLUMNS = ["split", "bucket", "shard", "corpus", "position", "audio_sha256", "mel_sum", "mel_square_sum"]
"""Columns of an index that make a `StoredMel`."""


@dataclass(frozen=True, kw_only=True)
class StoredClips:
    """The clips of a task whose mels the previous cache holds."""

    positions: np.ndarray
    """Positions of the clips in the task."""
    rows: bytes
    """Rows of the clips in that cache: a packed table with `STORED_COLUMNS`."""
    files: Mapping[ShardId, Path]
    """Shards of that cache with the mels."""

    def by_position(self) -> dict[int, StoredMel]:
        """Position in the task to the mel."""
        rows = zip(*unpack(self.rows).to_pydict().values(), strict=True)
        return {
            position: StoredMel(self.files[ShardId(*row[:4])], row[4], row[5], row[6:])
            for position, row in zip(self.positions.tolist(), rows, strict=True)
        }


@dataclass(frozen=True, kw_only=True)
class StoredMels:
    """Reads single records of shards; each read opens and closes the file, so that any count of shards may be used."""

    mel_dtype: str
    mel_channels: int
    _offsets: dict[Path, list[int]] = field(default_factory=dict)

    def read_record(self, path: Path, position: int, clip_id: str) -> Record:
        """The record at a position of a shard; a `LockstepError` if it does not read back as this clip's."""
        try:
            with path.open("rb", buffering=0) as file:
                if path not in self._offsets:
                    self._offsets[path] = _record_offsets(file.fileno())
                start, end = self._offsets[path][position], self._offsets[path][position + 1]
                framed = os.pread(file.fileno(), end - start, start)
            payload = next(unframe(memoryview(framed)))
            record = parse_example(payload, mel_dtype=self.mel_dtype, mel_channels=self.mel_channels)
            if record.clip_id != clip_id:
                raise CorruptRecord(f"holds clip {record.clip_id!r}")
        except (OSError, CorruptRecord, StopIteration, IndexError) as error:
            location = f"{path} record {position} ({clip_id})"
            fix = f"{repair_command(path.parents[2])}, or build with --fresh"
            raise LockstepError(location, found=f"cannot be read: {error}", fix=fix, exit_code=1) from None
        return record


def _record_offsets(descriptor: int) -> list[int]:
    """Bytes from the start of the file to each record, and to the end of the last one."""
    size, offsets = os.fstat(descriptor).st_size, [0]
    while offsets[-1] + FRAME_BYTES <= size:
        (length,) = struct.unpack("<Q", os.pread(descriptor, 8, offsets[-1]))
        offsets.append(min(offsets[-1] + FRAME_BYTES + length, size))
    return offsets
