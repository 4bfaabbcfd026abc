"""Reading Parquet files: small values row by row, and embedded audio, unpacked to files a row group at a time."""

import hashlib
import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from xtts.precompute.workers.disks import attempt_path, check_visible, disk_errors_explained
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import MISSING_AUDIO
from xtts.shared.errors import refuse_pointer
from xtts.shared.system.folder_lock import blocking_lock

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SUFFIX = ".parquet"
_BATCH_ROWS, _AUDIO_ROWS = 1024, 8
_BUFFER_BYTES = 2**20
_RATES = ("sampling_rate", "samplerate", "sample_rate")
_SAMPLES = ("audio", "array", "samples", "waveform", "wav", "speech")
"""Names of columns with the numbers of audio, and of its sampling rate."""
_BROKEN = "broken"
"""Name of a file beside the unpacked rows that says why the rest could not be read."""
_LEAST_AUDIO_BYTES = 64
"""Average bytes per row below which a column may have rows without audio."""


class BrokenParquet(Exception):
    """A file that cannot be read; the message is pyarrow's."""


@contextmanager
def open_parquet(path: Path) -> Iterator["pq.ParquetFile"]:
    """Open a `pyarrow.parquet.ParquetFile`; raises `BrokenParquet` for any error in opening it or in the block."""
    import pyarrow.parquet as pq

    refuse_pointer(path)
    try:
        # Read a page at a time: with pre_buffer, memory would hold all of a row group's column.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
            yield file
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        text = " ".join(str(error).split())
        raise BrokenParquet(text[:120] or type(error).__name__) from None


def row_values(file: "pq.ParquetFile", group: int, leaves: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield the values of `leaves` in each row of a row group; a leaf is a column, or a field of one (`audio.path`)."""
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(leaves)):
        columns = _flat(batch)
        yield from zip(*(columns[leaf].to_pylist() for leaf in leaves), strict=True)


def rows_with_audio(file: "pq.ParquetFile", group: int, leaf: str) -> list[bool]:
    """Return whether each row of a row group holds audio; True for all, without reading them, if large on average."""
    metadata = file.metadata.row_group(group)
    columns = map(metadata.column, range(metadata.num_columns))
    size = sum(
        column.total_uncompressed_size for column in columns if f"{column.path_in_schema}.".startswith(f"{leaf}.")
    )
    if size >= _LEAST_AUDIO_BYTES * metadata.num_rows:
        return [True] * metadata.num_rows
    return [bool(value) for (value,) in row_values(file, group, [leaf])]


def unpacked_row(path: Path, member: str, folder: Path) -> Path:
    """Return a file with the audio of a row, after unpacking its row group below `folder` unless that is done.

    Raises `AudioProblem` if the row holds none or cannot be read, `LockstepError` if `folder` is missing or full.
    """
    row, column = int(member.partition(":")[0]), member.partition(":")[2]
    status = path.stat()
    version = status.st_size, status.st_mtime_ns
    try:
        group = bisect_right(_starts(path, version), row) - 1
        name = hashlib.sha256(f"{path}:{version}:{column}".encode()).hexdigest()[:16]
        unpacked = folder / f"audio-{name}" / f"{group}"
        if not unpacked.is_dir():
            _unpack(path, group, _starts(path, version)[group], column, unpacked)
        if (unpacked / str(row)).exists():
            return unpacked / str(row)
        if (unpacked / _BROKEN).exists():
            raise BrokenParquet((unpacked / _BROKEN).read_text(encoding="utf-8"))
    except BrokenParquet as error:
        raise AudioProblem("unreadable audio", f"{path.name}: {error}") from None
    raise AudioProblem(MISSING_AUDIO, "the row holds no audio")


@lru_cache(maxsize=64)
def _starts(path: Path, _version: tuple[int, int]) -> list[int]:
    """Return the position of the first row of each row group, and the count of all rows."""
    with open_parquet(path) as file:
        groups = range(file.num_row_groups)
        return list(accumulate((file.metadata.row_group(group).num_rows for group in groups), initial=0))


def _unpack(path: Path, group: int, first: int, column: str, folder: Path) -> None:
    """Write each row's audio to a file named by its position; `folder` appears complete, by one worker alone."""
    check_visible(folder.parents[1])
    with disk_errors_explained(folder):
        folder.parent.mkdir(exist_ok=True)
        with blocking_lock(folder.with_suffix(".lock")):
            if folder.is_dir():
                return
            partial = attempt_path(folder)
            partial.mkdir()
            try:
                for row, value in enumerate(_audio(path, group, column), start=first):
                    if value is not None:
                        (partial / str(row)).write_bytes(value)
            except BrokenParquet as error:
                (partial / _BROKEN).write_text(str(error), encoding="utf-8")
            partial.rename(folder)


def _audio(path: Path, group: int, column: str) -> Iterator[bytes | None]:
    with open_parquet(path) as file:
        leaf = audio_leaf(file.schema_arrow, column)
        rate = rate_leaf(file.schema_arrow, leaf)
        for batch in file.iter_batches(_AUDIO_ROWS, row_groups=[group], columns=[leaf, *filter(None, [rate])]):
            columns = _flat(batch)
            if not rate:
                yield from columns[leaf].to_pylist()
                continue
            for samples, hertz in zip(columns[leaf], columns[rate].to_pylist(), strict=True):
                yield _wav(samples, hertz) if samples.is_valid and hertz else None


def _wav(samples: Any, hertz: float) -> bytes:  # noqa: ANN401 - a scalar that is a list
    """Return numbers as a WAV file: floats as they are, integers as PCM of 16 bits."""
    import soundfile

    values, file = samples.values.to_numpy(zero_copy_only=False), io.BytesIO()
    is_float = values.dtype.kind == "f"
    values = values.astype(np.float32 if is_float else np.int16)
    soundfile.write(file, values, round(hertz), subtype="FLOAT" if is_float else "PCM_16", format="WAV")
    return file.getvalue()


def rate_leaf(schema: pa.Schema, leaf: str) -> str:
    """Return the leaf with the sampling rate of a column of numbers; empty if the column holds files.

    Raises `BrokenParquet` if there is none.
    """
    flat = schema.empty_table().flatten().schema
    if not _is_numbers(flat.field(leaf).type):
        return ""
    folder = leaf.rpartition(".")[0]
    for name in flat.names:
        if name.removeprefix(f"{folder}." if folder else "") in _RATES:
            return str(name)
    raise BrokenParquet(f"numbers in {leaf!r} without a column {' or '.join(_RATES)}")


def _is_numbers(kind: Any) -> bool:  # noqa: ANN401 - a type of pyarrow, some of which have types of values
    """Whether a type is a list of numbers, the samples of audio."""
    is_list = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    return is_list and (kinds.is_floating(kind.value_type) or kinds.is_integer(kind.value_type))


def _flat(batch: pa.RecordBatch) -> pa.Table:
    """Return a record batch as a table with a column for each field of a struct, such as `audio.path`."""
    return pa.Table.from_batches([batch]).flatten()


def audio_leaf(schema: pa.Schema, column: str = "") -> str:
    """Return the leaf with the bytes of audio, as `audio.bytes`; it is detected unless `column` is given.

    Raises `BrokenParquet` if there is none, or several.
    """
    names: list[str] = [column] if column else ["audio"] if "audio" in schema.names else schema.names
    unique = [name for name in names if schema.names.count(name) == 1]
    fields = [schema.field(name) for name in unique]
    leaves = [*filter(None, map(_bytes_leaf, fields))]
    if not leaves:
        leaves = [leaf for field in fields if field.name in (column, *_SAMPLES) and (leaf := _numbers_leaf(field))]
    if len(leaves) != 1:
        raise BrokenParquet(f"{len(leaves) or 'no'} columns of audio")
    return leaves[0]


def _numbers_leaf(field: "pa.Field[Any]") -> str:
    """Return the leaf with the samples of a column, its own or `array` of its struct; empty if there is none."""
    position = field.type.get_field_index("array") if kinds.is_struct(field.type) else -1
    kind = field.type.field(position).type if position >= 0 else field.type
    return (f"{field.name}.array" if position >= 0 else str(field.name)) if _is_numbers(kind) else ""


def _bytes_leaf(field: "pa.Field[Any]") -> str:
    """Return the leaf with the bytes of a column, its own or that of its struct; empty if there is none."""
    position = field.type.get_field_index("bytes") if kinds.is_struct(field.type) else -1
    kind = field.type.field(position).type if position >= 0 else field.type
    # A writer that saw no bytes at all may not have known their type.
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or (position >= 0 and kinds.is_null(kind)):
        return f"{field.name}.bytes" if position >= 0 else str(field.name)
    return ""
