"""Parquet files: columns of small values row by row, and embedded audio, a row group at a time, as files."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xtts.precompute.workers.shared_folders import attempt_path, check_visible
from xtts.precompute.workers.stopping import disk_errors_explained
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import MISSING_AUDIO

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIX = ".parquet"
_BATCH_ROWS, _AUDIO_ROWS = 1024, 8
_BUFFER_BYTES = 2**20
_BROKEN = "broken"
"""File beside the unpacked rows with what is wrong with the others."""
_LEAST_AUDIO_BYTES = 64
"""A column with fewer bytes a row has rows without audio."""


class BrokenParquet(Exception):
    """A file that cannot be read, with what pyarrow says of it."""


@contextmanager
def open_parquet(path: Path) -> Iterator["pq.ParquetFile"]:
    """The `pyarrow.parquet.ParquetFile`; raises `BrokenParquet` for all that is wrong with it, then and later."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # A page at a time: a column of a row group read ahead would be in memory whole.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
            yield file
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        text = " ".join(str(error).split())
        raise BrokenParquet(text[:120] or type(error).__name__) from None


def member_of(row: int, column: str) -> str:
    """What a clip's source calls a row, and its column where the user named one."""
    return f"{row}:{column}" if column else str(row)


def row_values(file: "pq.ParquetFile", group: int, leaves: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The values of these columns in a row group, row by row; of a structure a part, as in `audio.path`."""
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(leaves)):
        columns = _flat(batch)
        yield from zip(*(columns[leaf].to_pylist() for leaf in leaves), strict=True)


def holding_audio(file: "pq.ParquetFile", group: int, leaf: str) -> list[bool]:
    """Which rows of a row group hold audio; where they are large on average all are taken to, and none is read."""
    part = file.metadata.row_group(group)
    columns = [part.column(number) for number in range(part.num_columns)]
    size = sum(column.total_uncompressed_size for column in columns if column.path_in_schema == leaf)
    if size >= _LEAST_AUDIO_BYTES * part.num_rows:
        return [True] * part.num_rows
    return [bool(value) for (value,) in row_values(file, group, [leaf])]


def unpacked_row(path: Path, member: str, folder: Path) -> Path:
    """A file with the audio of a row; its row group is unpacked below `folder` where that was not done before.

    Raises `AudioProblem` where the row holds none or cannot be read, `LockstepError` where `folder` is away or full.
    """
    row, column = int(member.partition(":")[0]), member.partition(":")[2]
    status = path.stat()
    version = status.st_size, status.st_mtime_ns
    try:
        group = bisect_right(_starts(path, version), row) - 1
        name = hashlib.sha256(f"{path}:{version}:{column}".encode()).hexdigest()[:16]
        there = folder / f"audio-{name}" / f"{group}"
        if not there.is_dir():
            _unpack(path, group, _starts(path, version)[group], column, there)
        if (there / str(row)).exists():
            return there / str(row)
        if (there / _BROKEN).exists():
            raise BrokenParquet((there / _BROKEN).read_text(encoding="utf-8"))
    except BrokenParquet as problem:
        raise AudioProblem("unreadable audio", f"{path.name}: {problem}") from None
    raise AudioProblem(MISSING_AUDIO, "the row holds none")


@lru_cache(maxsize=64)
def _starts(path: Path, _version: tuple[int, int]) -> list[int]:
    """The number of the first row of each row group, and of all rows."""
    with open_parquet(path) as file:
        groups = range(file.num_row_groups)
        return list(accumulate((file.metadata.row_group(group).num_rows for group in groups), initial=0))


def _unpack(path: Path, group: int, first: int, column: str, there: Path) -> None:
    """Write each row's audio to a file of its number, in a folder that is there at once whole; one worker does it."""
    import fcntl  # a system without it was refused before

    check_visible(there.parents[1])
    with disk_errors_explained(there):
        there.parent.mkdir(exist_ok=True)
        with open(there.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if there.is_dir():
                return
            part = attempt_path(there)
            part.mkdir()
            try:
                for row, value in enumerate(_audio(path, group, column), start=first):
                    if value is not None:
                        (part / str(row)).write_bytes(value)
            except BrokenParquet as problem:
                (part / _BROKEN).write_text(str(problem), encoding="utf-8")
            part.rename(there)


def _audio(path: Path, group: int, column: str) -> Iterator[bytes | None]:
    with open_parquet(path) as file:
        leaf = audio_leaf(file.schema_arrow, column)
        for batch in file.iter_batches(_AUDIO_ROWS, row_groups=[group], columns=[leaf]):
            yield from _flat(batch)[leaf].to_pylist()


def _flat(batch: "pa.RecordBatch") -> "pa.Table":
    """A table of a record batch, with a column `audio.path` for the part of a structure."""
    import pyarrow as pa

    return pa.Table.from_batches([batch]).flatten()


def audio_leaf(schema: "pa.Schema", column: str = "") -> str:
    """The column with the bytes of audio, `audio.bytes` or a binary one; looked for unless it is named.

    Raises `BrokenParquet` where there is none, or several.
    """
    names: list[str] = [column] if column else ["audio"] if "audio" in schema.names else schema.names
    once = [name for name in names if schema.names.count(name) == 1]
    found = [leaf for name in once if (leaf := _bytes_leaf(schema.field(name)))]
    if len(found) != 1:
        raise BrokenParquet(f"{len(found) or 'no'} columns of audio")
    return found[0]


def _bytes_leaf(field: "pa.Field[Any]") -> str:
    import pyarrow.types as kinds

    at = field.type.get_field_index("bytes") if kinds.is_struct(field.type) else -1
    kind = field.type.field(at).type if at >= 0 else field.type
    # A writer that saw no bytes at all may not have known their type.
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or (at >= 0 and kinds.is_null(kind)):
        return f"{field.name}.bytes" if at >= 0 else str(field.name)
    return ""
