"""Rows of the ledger while a build works on them: Arrow files, from which a worker takes the rows that its task names.

So no text, id or path is in the memory of the command. The files lie where every worker sees them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xtts.precompute.features.scan import Scanned, ScannedRow
from xtts.precompute.workers.parts import new_part
from xtts.shared.cache.clip_index import UNDECIDED, IndexRow, finished_row, rows_from_columns
from xtts.shared.cache.index_writer import table_of

SCANNED_PARTS, EARLIER_PARTS, FINISHED_PARTS = "scanned", "earlier", "finished"
"""Kinds of parts: what a scan found, rows of earlier builds, rows as an index has them."""
Spots = tuple[np.ndarray, np.ndarray]
"""Where rows are: the number of the part and the place in it of each, int32[N] both."""


def part_path(folder: Path, kind: str, number: int) -> Path:
    """Where a part lies."""
    return folder / f"{kind}-{number:06d}.arrow"


def write_part(path: Path, rows: Sequence[ScannedRow | IndexRow]) -> None:
    """Write rows to a file, at once whole; a `LockstepError` where its folder is not there."""
    write_table(path, table_of(rows))


def write_table(path: Path, table: Any) -> None:  # noqa: ANN401 - pyarrow ships no types
    """Write an Arrow table to a file, at once whole: another attempt at the same task may have written it before."""
    beside = new_part(path)
    beside.write_bytes(table_bytes(table))
    beside.rename(path)  # not synced: nobody reads it after a crash


def table_bytes(table: Any) -> bytes:  # noqa: ANN401
    """An Arrow file of one batch."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_table(path: Path) -> Any:  # noqa: ANN401
    """The Arrow table of a file, of which nothing is read before it is used."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def take_table(folder: Path, kind: str, spots: Spots) -> Any:  # noqa: ANN401
    """The rows at these spots, in their order, as an Arrow table."""
    import pyarrow as pa

    parts, places = spots
    order = np.argsort(parts, kind="stable")
    ends = np.flatnonzero(np.diff(parts[order], append=-1)) + 1
    tables, start = [], 0
    for end in ends.tolist():
        chosen = order[start:end]
        tables.append(read_table(part_path(folder, kind, int(parts[chosen[0]]))).take(pa.array(places[chosen])))
        start = end
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_tables(tables).take(pa.array(back)).combine_chunks()


def take_rows(folder: Path, kind: str, spots: Spots) -> list[ScannedRow | IndexRow]:
    """The rows at these spots, in their order."""
    return rows_of(take_table(folder, kind, spots)) if len(spots[0]) else []


def take_scanned(folder: Path, spots: Spots) -> list[Scanned]:
    """The kept clips at these spots of what a scan found."""
    return [row for row in take_rows(folder, SCANNED_PARTS, spots) if isinstance(row, Scanned)]


def read_rows(path: Path) -> list[ScannedRow | IndexRow]:
    """All rows of a part."""
    return rows_of(read_table(path))


def rows_of(table: Any) -> list[ScannedRow | IndexRow]:  # noqa: ANN401
    """The rows of an Arrow table with the columns of an index."""
    return rows_from_columns(table.to_pydict(), _row)


def _row(status: str, *facts: Any) -> ScannedRow | IndexRow:  # noqa: ANN401 - as `finished_row` takes them
    if status != UNDECIDED:
        return finished_row(status, *facts)
    _, clip, file, tokens, audio, _, _, quality = facts
    return Scanned(clip=clip, file=file, tokens=tokens, audio=audio, quality=quality)
