"""Mels of an earlier cache, read back so that no audio is decoded twice."""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from xtts.precompute.features.tables import unpack
from xtts.shared.cache.clip_index import ShardPlace
from xtts.shared.cache.records import FRAME_BYTES, CorruptRecord, Record, parse_example, unframe
from xtts.shared.errors import LockstepError, repair_command


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredMel:
    """Where a clip's mel lies, and what is known of it."""

    path: Path
    position: int
    """Of its record in the shard `path`."""
    audio_sha256: str
    sums: tuple[float, float]
    """Of the mel, and of its squares."""


STORED_FACTS = ["split", "bucket", "shard", "corpus", "position", "audio_sha256", "mel_sum", "mel_square_sum"]
"""Columns of an index that say where a mel lies."""


@dataclass(frozen=True, kw_only=True)
class StoredClips:
    """Of the clips of a task those whose mels the finished cache holds."""

    places: np.ndarray
    """Places in the task."""
    rows: bytes
    """Their rows of that cache: a packed table with `STORED_FACTS`."""
    files: Mapping[ShardPlace, Path]
    """Its shards that hold them."""

    def by_place(self) -> dict[int, StoredMel]:
        """Where each mel lies."""
        rows = zip(self.places.tolist(), zip(*unpack(self.rows).to_pydict().values(), strict=True), strict=True)
        return {
            place: StoredMel(path=self.files[ShardPlace(*row[:4])], position=row[4], audio_sha256=row[5], sums=row[6:])
            for place, row in rows
        }


@dataclass(frozen=True, kw_only=True)
class StoredMels:
    """Reads single records by position; files are opened for one read each, so that any number may be used."""

    mel_dtype: str
    mel_channels: int
    _offsets: dict[Path, list[int]] = field(default_factory=dict)

    def read_record(self, path: Path, position: int, clip_id: str) -> Record:
        """The whole record at a position of a shard; a `LockstepError` when it does not read back as this clip's."""
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
            where = f"{path} record {position} ({clip_id})"
            fix = f"{repair_command(path.parents[2])}, or build with --fresh"
            raise LockstepError(where, found=f"cannot be used again: {error}", fix=fix, exit_code=1) from None
        return record


def _record_offsets(descriptor: int) -> list[int]:
    """Where each record starts, and where the last one ends."""
    size, offsets = os.fstat(descriptor).st_size, [0]
    while offsets[-1] + FRAME_BYTES <= size:
        (length,) = struct.unpack("<Q", os.pread(descriptor, 8, offsets[-1]))
        offsets.append(min(offsets[-1] + FRAME_BYTES + length, size))
    return offsets
