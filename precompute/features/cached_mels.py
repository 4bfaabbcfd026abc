"""Mels of the previous cache, which are read back so that no audio is decoded twice."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xtts.precompute.features.tables import unpack
from xtts.shared.cache.clip_index import ShardId


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
