"""The rows of a shard that is kept: what an earlier build wrote of its clips, with paths and times of today."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xtts.precompute.features.extract import outcomes
from xtts.precompute.features.finished_shard import as_it_is_now
from xtts.precompute.features.row_parts import (
    EARLIER_PARTS,
    FINISHED_PARTS,
    Spots,
    part_path,
    take_rows,
    take_scanned,
    write_part,
)


@dataclass(frozen=True, kw_only=True)
class GatherTask:
    """The clips of a shard in order, where the scan and an earlier build have them."""

    number: int
    """Of the part to write."""
    file: str
    """Of the shard, without digest."""
    clips: Spots
    earlier: Spots


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Of a `GatherTask`; the rest as in `ShardResult`."""

    file: str
    path: Path
    """The part."""
    rejected: np.ndarray
    reasons: np.ndarray


def gather_shard(parts: Path, task: GatherTask) -> Gathered:
    """Write the rows of a shard as the index has them to a part of the folder `parts` (runs in a worker)."""
    clips, earlier = take_scanned(parts, task.clips), take_rows(parts, EARLIER_PARTS, task.earlier)
    rows = [as_it_is_now(row, was) for row, was in zip(clips, earlier, strict=True)]  # type: ignore[arg-type]
    path = part_path(parts, FINISHED_PARTS, task.number)
    write_part(path, rows)
    return Gathered(file=task.file, path=path, **outcomes(rows))
