"""What earlier builds knew of each clip: rows of the finished cache and of staged shards, as parts and columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xtts.precompute.corpus.clip_digests import digest_columns
from xtts.precompute.features.clip_columns import KEPT_REASON, reason_number
from xtts.precompute.features.row_parts import EARLIER_PARTS, Spots, part_path, read_table, rows_of, write_table
from xtts.shared.cache.cache_spec import SPLITS
from xtts.shared.cache.clip_index import Kept, Place, Rejected, from_columns, readable_index

_BITS = (1, 8, 16, 32)
"""Of split, bucket, corpus and number of a shard."""
_MOST_POSITION = 2**31 - 1
_ROWS = 2**12
"""As objects at a time."""


@dataclass(frozen=True, kw_only=True)
class EarlierTask:
    """Rows to write to a part."""

    number: int
    """Of the part."""
    source: Path
    """An index, or the sidecar of a shard."""
    row_group: int | None = None
    """Of the index."""


@dataclass(frozen=True, kw_only=True)
class EarlierColumns:
    """Rows of earlier builds, one value a row; repeated ids are left out."""

    high: np.ndarray
    """uint64[M], as in `ClipColumns`."""
    low: np.ndarray
    part: np.ndarray
    """int32[M]: number of the part."""
    row: np.ndarray
    """int32[M]: place in the part."""
    place: np.ndarray
    """int64[M]: the shard, as `place_number` gives it; -1 for a clip that never was in one."""
    position: np.ndarray
    """int32[M]: place of the record in its shard, -1 for none."""
    reason: np.ndarray
    """uint8[M], as in `ClipColumns`."""
    corpora: list[str]
    """Of all rows, repeated ids included."""

    def __len__(self) -> int:
        return len(self.high)

    def spots(self, rows: np.ndarray) -> Spots:
        """Where these rows are, in the parts of earlier builds."""
        return self.part[rows], self.row[rows]


def place_number(place: Place | None, corpora: Sequence[str]) -> int:
    """A number for a shard, by the place of its corpus among `corpora`; -1 for what cannot be one."""
    if place is None or place.split not in SPLITS or place.corpus not in corpora:
        return -1
    numbers = (SPLITS.index(place.split), place.bucket, corpora.index(place.corpus), place.shard)
    whole = 0
    for number, bits in zip(numbers, _BITS, strict=True):
        if not 0 <= number < 2**bits:
            return -1
        whole = (whole << bits) + number
    return whole


def write_earlier(folder: Path, seed: int, corpora: Sequence[str], task: EarlierTask) -> EarlierColumns:
    """Write the rows of a task to a part of `folder`; their columns (runs in a worker).

    corpora: whose rows have a place. A `LockstepError` for an index that is broken.
    """
    path = part_path(folder, EARLIER_PARTS, task.number)
    if task.row_group is None:
        table = read_table(task.source)
        found = [_columns(rows_of(table), seed, corpora, task.number, 0)]
    else:
        with readable_index(task.source) as file:
            table = file.read_row_group(task.row_group)
            found = [
                _columns(from_columns(table.slice(start, _ROWS).to_pydict()), seed, corpora, task.number, start)
                for start in range(0, len(table), _ROWS)
            ]
    write_table(path, table)
    return join_earlier(found)


def _columns(rows: Sequence[Any], seed: int, corpora: Sequence[str], part: int, start: int) -> EarlierColumns:
    numbers = np.arange(start, start + len(rows), dtype=np.int32)
    first = np.array([not row.clip.duplicate for row in rows], bool)
    high, low = digest_columns(seed, [row.clip.id for row in rows])
    place = [place_number(row.place, corpora) for row in rows]
    position = [min(row.written.position, _MOST_POSITION) if isinstance(row, Kept) else -1 for row in rows]
    reason = [reason_number(r.rejection.reason) if isinstance(r, Rejected) else KEPT_REASON for r in rows]
    return EarlierColumns(
        high=high[first], low=low[first], part=np.full(int(first.sum()), part, np.int32), row=numbers[first],
        place=np.array(place, np.int64)[first], position=np.array(position, np.int32)[first],
        reason=np.array(reason, np.uint8)[first], corpora=sorted({row.clip.corpus for row in rows}),
    )  # fmt: skip


def join_earlier(parts: Sequence[EarlierColumns]) -> EarlierColumns:
    """All columns one after the other."""
    names = ("high", "low", "part", "row", "place", "position", "reason")
    kinds = (np.uint64, np.uint64, np.int32, np.int32, np.int64, np.int32, np.uint8)
    columns = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in zip(names, kinds, strict=True)
    }
    return EarlierColumns(**columns, corpora=sorted({name for part in parts for name in part.corpora}))


_SLICE = 2**18


def find_rows(earlier: EarlierColumns, high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """int32[N]: the row of each clip with these digests, -1 for none; empty where there are no rows."""
    found = np.full(len(high) if len(earlier) else 0, -1, np.int32)
    if not len(earlier):
        return found
    order = np.argsort(earlier.high, kind="stable").astype(np.int32)
    ordered = earlier.high[order]
    for start in range(0, len(high), _SLICE):  # what is in between stays small
        part = slice(start, start + _SLICE)
        rows = order[np.minimum(np.searchsorted(ordered, high[part]), len(order) - 1)]
        same = (earlier.high[rows] == high[part]) & (earlier.low[rows] == low[part])
        found[part] = np.where(same, rows, -1)
    return found
