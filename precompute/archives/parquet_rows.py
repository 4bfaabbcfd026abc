"""Rows of Parquet files: a row's audio, and the other columns, in memory that pages bound and row groups do not."""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any
from weakref import WeakSet

from xtts.precompute.archives.parquet_pages import BrokenParquet, Chunk, PageSizes, page_sizes, read_footer
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

SUFFIX = ".parquet"
LARGEST_PAGE_BYTES = 2**30
"""Of a dictionary and a page of values together, packed or not. Reading them takes about twice as much."""
LARGEST_TEXT_PAGE_BYTES = 2**28
"""Likewise of a column without audio."""
_BUFFER_BYTES = 2**20
_BATCH_BYTES, _BATCH_ROWS = 2**26, 1024
"""Of columns without audio: so many rows at a time that, were each as large as a page, they were no larger."""
_LEAST_AUDIO_BYTES = 64
"""A column with fewer bytes a row has rows without audio."""
_OPEN_FILES = 4
_tables: "WeakSet[Table]" = WeakSet()
"""All open files, also those that `_open` has dropped."""
_FIX = "write it again with smaller row groups, as pyarrow does with row_group_size=100"


def is_row(clip: Clip) -> bool:
    """Whether a clip's audio is embedded in a row of a Parquet file."""
    return clip.member != "" and clip.source.endswith(SUFFIX)


def reading_order(clip: Clip) -> tuple[str, str, int]:
    """What clips are sorted by so that the rows of each file come in their order."""
    return clip.corpus, clip.source, _row_and_column(clip.member)[0] if is_row(clip) else 0


def member_of(row: int, column: str) -> str:
    """What `Clip.member` calls a row, and its column where the user named one."""
    return f"{row}:{column}" if column else str(row)


def _row_and_column(member: str) -> tuple[int, str]:
    """What `member_of` was given."""
    row, _, column = member.partition(":")
    return int(row), column


def read_row(path: Path, member: str) -> bytes:
    """The bytes of the audio file in a row; fast for rows that come in their order.

    Raises:
        AudioProblem: The row holds none, or cannot be read.
        LockstepError: A page is too large to be unpacked.
    """
    row, column = _row_and_column(member)
    with _problems_of_audio(path):
        return open_table(path).audio(column).read(row)


def group_of(path: Path, clip: Clip) -> int:
    """Number of the row group in which a clip's row lies; -1 where the file cannot be read."""
    try:
        with parquet_errors():
            return open_table(path).group_of(_row_and_column(clip.member)[0])
    except BrokenParquet:
        return -1


def average_bytes(path: Path, clip: Clip) -> int:
    """How large the audio of a row is on average in its row group, as the footer says; 0 where it cannot be read."""
    try:
        with parquet_errors():
            table, (row, column) = open_table(path), _row_and_column(clip.member)
            return table.average_bytes(table.group_of(row), audio_leaf(table.schema, column))
    except BrokenParquet:
        return 0


def release_pages() -> None:
    """Give back the memory of the pages that `read_row` has read; files stay open."""
    import pyarrow as pa

    for table in _tables:
        table.release()
    pa.default_memory_pool().release_unused()


@contextmanager
def parquet_errors() -> Iterator[None]:
    """Turn whatever pyarrow says of a broken file into `BrokenParquet`."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        text = " ".join(str(error).split())
        raise BrokenParquet(text[:120] or type(error).__name__) from None


@contextmanager
def _problems_of_audio(path: Path) -> Iterator[None]:
    try:
        with parquet_errors():
            yield
    except BrokenParquet as problem:
        raise AudioProblem("unreadable audio", f"{path.name}: {problem}") from None


def open_table(path: Path) -> "Table":
    """An open file, kept open for the next row; raises `BrokenParquet`, or `OSError` where there is none."""
    status = os.stat(path)
    return _open(str(path), status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=_OPEN_FILES)
def _open(path: str, *_version: int) -> "Table":
    return Table(path)


class Table:
    """An open Parquet file."""

    def __init__(self, path: str) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with parquet_errors():
            self._groups = read_footer(path)
            # A page at a time: a row group read ahead would be in memory whole.
            self._parquet = pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES)
            self.schema = self._parquet.schema_arrow
        self._audio: dict[str, _AudioRows] = {}
        self.starts = list(accumulate((group.rows for group in self._groups), initial=0))
        """The number of the first row of each row group, and of all rows."""
        _tables.add(self)

    def group_of(self, row: int) -> int:
        """Number of a row's row group."""
        return bisect_right(self.starts, row) - 1

    def filled_groups(self) -> list[int]:
        """Numbers of the row groups that hold rows; one without rows has no pages."""
        return [group for group in range(len(self._groups)) if self._groups[group].rows]

    def release(self) -> None:
        """Forget the pages that were read last."""
        self._audio.clear()

    def audio(self, column: str) -> "_AudioRows":
        """The rows of the audio in a column; where it is not named, in the one that there is."""
        if column not in self._audio:
            self._audio[column] = _AudioRows(self, audio_leaf(self.schema, column))
        return self._audio[column]

    def sizes(self, group: int, leaf: str, most: int) -> PageSizes:
        """Page sizes of a column in a row group; a `LockstepError` where what is held at a time is more than `most`."""
        try:
            with parquet_errors():
                sizes = page_sizes(self.path, self._chunk(group, leaf))
        except BrokenParquet as problem:
            raise BrokenParquet(f"row group {group}: {problem}") from None
        if sizes.at_once_bytes > most:
            found = f"pages of {sizes.at_once_bytes / 2**20:.0f} MiB in column {leaf}"
            expected = f"at most {most / 2**20:.0f} MiB"
            raise LockstepError(f"{self.path} row group {group}", found=found, expected=expected, fix=_FIX)
        return sizes

    def _chunk(self, group: int, leaf: str) -> Chunk:
        chunk = self._groups[group].chunks.get(leaf)
        if chunk is None:
            raise BrokenParquet(f"no column {leaf}")
        return chunk

    def batches(self, group: int, leaves: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of at most so many rows of these columns."""
        yield from self._parquet.iter_batches(rows, row_groups=[group], columns=list(leaves), use_threads=False)

    def values(self, group: int, leaves: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The values of these columns row by row, the parts of structures as columns; for columns of small values."""
        largest = max(self.sizes(group, leaf, LARGEST_TEXT_PAGE_BYTES).at_once_bytes for leaf in leaves)
        rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, largest)))
        count, expected = 0, self.starts[group + 1] - self.starts[group]
        with parquet_errors():
            for batch in self.batches(group, leaves, rows):
                count += batch.num_rows
                yield from zip(*(_column(batch, leaf).to_pylist() for leaf in leaves), strict=True)
        if count != expected:
            raise BrokenParquet(f"row group {group} holds {count} rows, its footer says {expected}")

    def average_bytes(self, group: int, leaf: str) -> int:
        """What a value of a column takes in a row group, as the footer says."""
        rows = self.starts[group + 1] - self.starts[group]
        return int(self._chunk(group, leaf).unpacked_bytes) // max(1, rows)

    def holding_audio(self, group: int, leaf: str) -> list[bool] | None:
        """Which rows hold audio; None where only reading the audio would tell, and all of them are taken to."""
        enough = _LEAST_AUDIO_BYTES * (self.starts[group + 1] - self.starts[group])
        if self._chunk(group, leaf).unpacked_bytes >= enough:
            return None
        if self.sizes(group, leaf, LARGEST_PAGE_BYTES).whole_bytes >= enough:
            return None
        return [bool(value) for (value,) in self.values(group, [leaf])]


class _AudioRows:
    """The embedded audio of a file's rows, one in memory at a time."""

    def __init__(self, table: Table, leaf: str) -> None:
        self._table, self._leaf = table, leaf
        self._group, self._row = -1, -1
        self._value: Any = None
        self._batches: Iterator[Any] | None = None

    def read(self, row: int) -> bytes:
        """The bytes in a row; from the start of its row group unless it follows the last one that was read."""
        group = self._table.group_of(row)
        if group + 1 >= len(self._table.starts):
            raise BrokenParquet(f"no row {row}")
        if group != self._group or row < self._row:
            self._begin(group)
        while self._row < row:
            batch = next(self._batches, None) if self._batches else None
            if batch is None:
                raise BrokenParquet(f"row group {group} ends before row {row}")
            self._row, self._value = self._row + 1, _column(batch, self._leaf)[0] if self._row + 1 == row else None
        data = self._value.as_py() if self._value is not None else None
        if self._row + 1 == self._table.starts[group + 1]:
            self._batches = None  # the row group's pages are of no use any more
        if data is None:
            raise AudioProblem("missing audio", "the row holds none")
        return bytes(data)

    def _begin(self, group: int) -> None:
        self._group, self._row, self._value, self._batches = -1, -1, None, None
        self._table.sizes(group, self._leaf, LARGEST_PAGE_BYTES)
        # One row at a time: a page of a few bytes may refer to one large value in every row.
        self._batches = self._table.batches(group, [self._leaf], 1)
        self._group, self._row = group, self._table.starts[group] - 1


def _column(batch: Any, leaf: str) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """A column, or the part of a structure, of a record batch."""
    import pyarrow.compute as pc

    names = batch.schema.names
    if leaf in names:
        return batch.column(names.index(leaf))
    name, part = split_leaf(leaf)
    return pc.struct_field(batch.column(names.index(name)), part)


def split_leaf(leaf: str) -> tuple[str, str]:
    """(`audio`, `bytes`) of `audio.bytes`; the part is empty for a plain column."""
    name, _, part = leaf.rpartition(".")
    return (name, part) if name else (part, "")


def audio_leaf(schema: Any, column: str = "") -> str:  # noqa: ANN401 - pyarrow ships no types
    """The column with the bytes of audio, `audio.bytes` or a binary one; looked for unless it is named.

    Raises:
        BrokenParquet: There is none, or several.
    """
    names: list[str] = [column] if column else ["audio"] if "audio" in schema.names else schema.names
    once = [name for name in names if schema.names.count(name) == 1]
    found = [leaf for name in once if (leaf := _bytes_leaf(schema.field(name)))]
    if len(found) != 1:
        raise BrokenParquet(f"{len(found) or 'no'} columns of audio")
    return found[0]


def _bytes_leaf(field: Any) -> str:  # noqa: ANN401 - pyarrow ships no types
    import pyarrow.types as kinds

    at = field.type.get_field_index("bytes") if kinds.is_struct(field.type) else -1
    kind = field.type.field(at).type if at >= 0 else field.type
    # A writer that saw no bytes at all may not have known their type.
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or (at >= 0 and kinds.is_null(kind)):
        return f"{field.name}.bytes" if at >= 0 else str(field.name)
    return ""
