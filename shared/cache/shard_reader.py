"""Read records of a finished cache without TensorFlow: those of a shard in order, or single ones by their position."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.records import FRAME_BYTES, CorruptRecord, Record, parse_example, unframe
from xtts.shared.errors import LockstepError, repair_command


def read_shard(path: Path, spec: CacheSpec) -> Iterator[Record]:
    """Yield the records of a shard, in order.

    Raises OSError if the file cannot be read, CorruptRecord at the first record that is not what was written.
    """
    for payload in unframe(memoryview(path.read_bytes())):
        yield parse_example(payload, mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)


@dataclass(frozen=True, kw_only=True)
class RecordReader:
    """Reads single records of shards; each read opens and closes the file, so that any count of shards may be used."""

    mel_dtype: str
    mel_channels: int
    _offsets: dict[Path, list[int]] = field(default_factory=dict)

    def read(self, path: Path, position: int, clip_id: str = "") -> Record:
        """The record at a position of a shard; a `LockstepError` if it does not read back, or is not of this clip."""
        try:
            with path.open("rb", buffering=0) as file:
                if path not in self._offsets:
                    self._offsets[path] = _record_offsets(file.fileno())
                start, end = self._offsets[path][position], self._offsets[path][position + 1]
                framed = os.pread(file.fileno(), end - start, start)
            payload = next(unframe(memoryview(framed)))
            record = parse_example(payload, mel_dtype=self.mel_dtype, mel_channels=self.mel_channels)
            if clip_id not in ("", record.clip_id):
                raise CorruptRecord(f"holds clip {record.clip_id!r}")
        except (OSError, CorruptRecord, StopIteration, IndexError) as error:
            location = f"{path} record {position}{clip_id and f' ({clip_id})'}"
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
