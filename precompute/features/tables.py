"""Arrow tables as bytes: of a task, of its result, of the rows beside a staged shard."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def pack(table: "pa.Table") -> bytes:
    """An Arrow file of one batch. A pickled slice would hold the whole table."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes) -> "pa.Table":
    """The table of `pack`."""
    import pyarrow as pa

    return pa.ipc.open_file(data).read_all()


def read_table(path: Path) -> "pa.Table":
    """The table of a file with such bytes; nothing of it is read before it is used."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def counted(column: "pa.ChunkedArray[Any]") -> dict[Any, int]:
    """The values of a column and how often each occurs: the most frequent first, then in the order of the rows."""
    import pyarrow.compute as pc

    counts = pc.value_counts(column.combine_chunks()).to_pylist()
    return {one["values"]: one["counts"] for one in sorted(counts, key=lambda one: -one["counts"])}
