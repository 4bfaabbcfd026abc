"""Arrow tables as bytes: of tasks, of their results, and of the rows beside a staged shard."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def pack(table: pa.Table) -> bytes:
    """Serialize a table as an Arrow file of one batch; a pickled slice would hold the table that it is a slice of."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes) -> pa.Table:
    """Return the table that `pack` serialized."""
    return pa.ipc.open_file(data).read_all()


def read_table(path: Path) -> pa.Table:
    """Return the table of a file with the bytes of `pack`; memory-mapped, so that columns are read on use."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def with_status(status: str, tables: Iterable[pa.Table]) -> pa.Table:
    """Return the rows with a status, such as `KEPT`, of tables with the columns of an index, in one table."""
    return pa.concat_tables([table.filter(pc.equal(table["status"], status)) for table in tables])


def counted(column: "pa.ChunkedArray[Any]") -> dict[str, int]:
    """Return the count of each value of a column: the most frequent first, then in the order of the rows."""
    counts = pc.value_counts(column.combine_chunks()).to_pylist()
    return {item["values"]: item["counts"] for item in sorted(counts, key=lambda item: -item["counts"])}
