"""Writing `index.parquet` group of rows by group of rows, so that memory does not grow with the corpus."""

from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from xtts.shared.cache.clip_index import index_schema

_GROUP_ROWS = 2**14
_REPEATED = ["speaker", "status", "reason", "notes", "split", "bucket", "shard", "language", "corpus"]
"""Columns with few different values, which a dictionary makes smaller, and by which a reader chooses row groups."""


class IndexWriter:
    """Rows in the order that they come in; equal rows, ended at equal places, give equal bytes."""

    def __init__(self, target: Path | IO[bytes]) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(
            target, index_schema(), compression="zstd", use_dictionary=_REPEATED, write_statistics=_REPEATED
        )
        self._waiting = list[Any]()
        self._rows = 0
        self.rows = 0
        """Rows added so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.end_group()
        self._writer.close()

    def add(self, table: Any) -> None:  # noqa: ANN401 - pyarrow ships no types
        """Append the rows of an Arrow table with these columns."""
        table = table.replace_schema_metadata(None)
        self.rows += len(table)
        while self._rows + len(table) >= _GROUP_ROWS:
            rest = _GROUP_ROWS - self._rows
            self._waiting.append(table.slice(0, rest))
            table = table.slice(rest)
            self.end_group()
        if len(table):
            self._waiting.append(table)
            self._rows += len(table)

    def end_group(self) -> None:
        """Let the next row begin another row group."""
        import pyarrow as pa

        if self._waiting:
            # One chunk: how rows came in must not show in the bytes.
            self._writer.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0
