"""Mels of an earlier cache, read back so that no audio is decoded twice."""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from xtts.precompute.features.row_parts import EARLIER_PARTS, Spots, take_rows
from xtts.shared.cache.clip_index import Kept, Place, Written
from xtts.shared.cache.records import FRAME_BYTES, CorruptRecord, Record, parse_example, unframe
from xtts.shared.errors import LockstepError, repair_command


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredMel:
    """Where a clip's mel lies, and what is known of it."""

    path: Path
    written: Written


@dataclass(frozen=True, kw_only=True)
class StoredClips:
    """Of the clips of a task those whose mels an earlier cache holds."""

    places: np.ndarray
    """Places in the task."""
    spots: Spots
    """Their rows of that cache, in the parts of earlier builds."""
    files: Mapping[Place, Path]
    """Its shards that hold them."""

    def read(self, parts: Path) -> dict[int, StoredMel]:
        """Where the mel lies, by place."""
        rows = take_rows(parts, EARLIER_PARTS, self.spots)
        return {
            place: StoredMel(path=self.files[row.place], written=row.written)
            for place, row in zip(self.places.tolist(), rows, strict=True)
            if isinstance(row, Kept)
        }


_LARGEST_RECORD_BYTES = 1 << 30
"""No record is larger: 65,536 frames of 4,096 channels in float32."""


@dataclass(frozen=True, kw_only=True)
class StoredMels:
    """Reads single records by position; files are opened for one read each, so that any number may be used."""

    mel_dtype: str
    mel_channels: int
    _offsets: dict[Path, list[int]] = field(default_factory=dict)

    def read(self, stored: StoredMel, clip_id: str) -> np.ndarray:
        """The clip's mel [T, M] without padding."""
        record = self.read_record(stored, clip_id)
        return record.mel[: record.mel_length]

    def read_record(self, stored: StoredMel, clip_id: str) -> Record:
        """The whole record; a `LockstepError` when it does not read back as this clip's."""
        try:
            with stored.path.open("rb", buffering=0) as file:
                start, end = self._span(file.fileno(), stored)
                if end - start > _LARGEST_RECORD_BYTES:
                    raise CorruptRecord(f"{end - start} bytes long")
                framed = os.pread(file.fileno(), end - start, start)
            payload = next(unframe(memoryview(framed), limit_bytes=len(framed)))
            record = parse_example(payload, mel_dtype=self.mel_dtype, mel_channels=self.mel_channels)
            if record.clip_id != clip_id:
                raise CorruptRecord(f"holds clip {record.clip_id!r}")
        except (OSError, CorruptRecord, StopIteration, IndexError) as error:
            where = f"{stored.path} record {stored.written.position} ({clip_id})"
            fix = f"{repair_command(stored.path.parents[2])}, or build with --fresh"
            raise LockstepError(where, found=f"cannot be used again: {error}", fix=fix, exit_code=1) from None
        return record

    def _span(self, descriptor: int, stored: StoredMel) -> tuple[int, int]:
        if stored.path not in self._offsets:
            self._offsets[stored.path] = list(_record_offsets(descriptor))
        offsets = self._offsets[stored.path]
        return offsets[stored.written.position], offsets[stored.written.position + 1]


def _record_offsets(descriptor: int) -> list[int]:
    """Where each record starts, and where the last one ends."""
    size, offsets = os.fstat(descriptor).st_size, [0]
    while offsets[-1] + FRAME_BYTES <= size:
        (length,) = struct.unpack("<Q", os.pread(descriptor, 8, offsets[-1]))
        offsets.append(min(offsets[-1] + FRAME_BYTES + length, size))
    return offsets
