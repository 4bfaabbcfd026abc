"""`index.parquet`: one row per clip of the corpus, kept or rejected, through pyarrow."""

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from xtts.shared.errors import LockstepError, repair_command

KEPT, REJECTED = "kept", "rejected"
REASONS = (
    "missing audio", "unreadable audio", "empty audio", "empty text", "no known symbols",
    "too long text", "too long audio", "too short audio", "duplicate id", "non-finite mel",
)  # fmt: skip
"""The closed list of why a clip is rejected."""
_GROUP_ROWS = 2**16
_READ_ROWS = 2**12  # the values of all columns of so many rows are held twice for a moment
_REPEATED = frozenset(("speaker", "status", "reason", "notes", "left_out", "split"))
"""Columns of few values: one string for all rows that hold it."""
_OF_THE_CORPUS = frozenset(("id", "text", "source"))
_MOST_ROWS = 2**25  # 60,000 hours; a file of a few bytes may claim any number


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexRow:
    """The ledger's line for one clip; fields that were never determined are None."""

    id: str
    speaker: str
    text: str
    status: str
    """`kept` or `rejected`."""
    reason: str | None = None
    """One of `REASONS`, for a rejected clip."""
    notes: str = ""
    """What was done to the audio: resampled, mixed down; and that the text is the raw one."""
    detail: str = ""
    """Particulars of a rejection."""
    left_out: str = ""
    """Characters of the text that the tokenizer does not know."""
    split: str | None = None
    bucket: int | None = None
    shard: int | None = None
    position: int | None = None
    """Place in the shard, from 0."""
    token_length: int | None = None
    mel_length: int | None = None
    seconds: float | None = None
    source: str | None = None
    """Audio file, relative to the corpus where it lies inside it."""
    source_bytes: int | None = None
    source_mtime_ns: int | None = None
    audio_sha256: str | None = None
    text_sha256: str | None = None
    record_sha256: str | None = None
    """Digest of the record's payload."""
    mel_sum: float | None = None
    """Sum of the stored log-mel over the true frames; with the next, the corpus statistics without reading shards."""
    mel_square_sum: float | None = None


def _schema() -> Any:  # noqa: ANN401 - pyarrow ships no types
    import pyarrow as pa

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    columns = []
    for field in fields(IndexRow):
        optional = "None" in str(field.type)
        base = next(kind for kind in kinds if kind.__name__ in str(field.type))
        columns.append(pa.field(field.name, kinds[base], nullable=optional))
    return pa.schema(columns)


def index_bytes(rows: Iterable[IndexRow]) -> bytes:
    """The bytes of `index.parquet`; equal rows give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # In groups and by columns: dicts or arrays of all rows would be the largest allocation of a build.
    sink, schema = io.BytesIO(), _schema()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _groups(rows):
            columns = [pa.array([getattr(row, n) for row in group], schema.field(n).type) for n in schema.names]
            writer.write_table(pa.table(columns, schema))
    return sink.getvalue()


def read_index(path: Path, *, strings: Mapping[str, str] | None = None) -> list[IndexRow]:
    """Rows of `index.parquet`; a `LockstepError` when it cannot be read or has other columns.

    `strings` maps strings that the caller holds to themselves: rows share them, and memory holds each one once.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    fix = repair_command(path.parent)
    try:
        rows, schema = pq.read_metadata(path).num_rows, pq.read_schema(path)
        if rows > _MOST_ROWS or not schema.equals(_schema()):
            found = f"{rows} rows" if rows > _MOST_ROWS else "other columns than this version writes"
            raise LockstepError(str(path), found=found, fix=fix, exit_code=1)
        known, repeated = strings or {}, dict[str | None, str | None]()
        batches = pq.ParquetFile(path).iter_batches(_READ_ROWS)
        return [row for batch in batches for row in _rows(batch, known, repeated)]
    except (OSError, pa.ArrowException) as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})", fix=fix, exit_code=1) from None


def _rows(
    batch: Any,  # noqa: ANN401
    known: Mapping[str, str],
    repeated: dict[str | None, str | None],
) -> Iterator[IndexRow]:
    names, columns = batch.schema.names, []
    for name in names:
        values = batch.column(name).to_pylist()
        if name in _REPEATED:
            values = [repeated.setdefault(value, value) for value in values]
        elif name in _OF_THE_CORPUS:
            values = [known.get(value, value) for value in values]
        columns.append(values)
    return (IndexRow(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True))


def _groups(rows: Iterable[IndexRow]) -> Iterator[list[IndexRow]]:
    remaining = iter(rows)
    while group := list(islice(remaining, _GROUP_ROWS)):
        yield group
