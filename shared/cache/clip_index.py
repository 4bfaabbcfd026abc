"""`index.parquet`: one row per clip of the corpus, kept or rejected, through pyarrow.

A build works on a table with the same columns. Unknown values are -1 or empty.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.errors import LockstepError, repair_command

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

KEPT, REJECTED, UNDECIDED = "kept", "rejected", "undecided"
"""Values of `status`; UNDECIDED while a build is at work, never in an index."""
MISSING_AUDIO, DUPLICATE, COPIED, NO_LETTERS, DOUBTFUL = (
    "missing audio", "duplicate id", "copied audio", "no known letters", "doubtful text",
)
UNKNOWN = -1
_IN_ARCHIVE = re.compile(r"(.+\.(?:parquet|[tT][aA][rR]))/(\d+\+\d+|\d+(?::.+)?)", re.DOTALL)
_READ_ROWS = 2**12  # rows whose values are held twice for a moment


class ShardId(NamedTuple):
    """The shard of a clip."""

    split: str
    bucket: int
    shard: int
    """Position among the shards of this split, bucket and corpus."""
    corpus: str = ""


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip as its corpus describes it."""

    id: str
    speaker: str
    text: str
    source: str
    """Audio file, relative to its corpus, or absolute; with its location in an archive: `a.tar/512+44144` (offset and
    size), `b.parquet/17` (the row)."""
    normalised: bool = False
    """Whether the corpus gives the text in words, as the third column of LJSpeech does."""
    duplicate: bool = False
    """Whether an earlier line has this id."""
    language: str = ""
    """ISO 639 code; empty for the language of the configuration."""
    start: float | None = None
    """Start of the clip in a longer recording, in seconds; None for a whole recording."""
    duration: float | None = None
    """Seconds."""
    corpus: str = ""
    """Name of its corpus; empty for a single corpus without a name."""
    doubt: str = ""
    """Why its text may be damaged: `KIND: what was found and where`; empty for plain text."""

    @property
    def audio_key(self) -> tuple[str, str, float | None, float | None]:
        """(corpus, source, start, duration): equal for clips with the same audio."""
        return self.corpus, self.source, self.start, self.duration

    @property
    def archive(self) -> tuple[str, str]:
        """(archive, location in it) of `source`; empty strings for a plain file, even in a folder named like one."""
        match = _IN_ARCHIVE.fullmatch(self.source)
        return (match[1], match[2]) if match else ("", "")

    @property
    def is_part(self) -> bool:
        """Whether its file holds more than this clip, so that size and time of the file do not identify the audio."""
        return self.archive != ("", "") or self.start is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexRow:
    """A clip with the results of a build."""

    clip: Clip
    status: str = UNDECIDED
    reason: str = ""
    """Why it is rejected: one of those in docs/cache-format.md."""
    detail: str = ""
    """Values and limits, or an error."""
    source_bytes: int = UNKNOWN
    """Size of the file, also if it holds other clips too."""
    source_mtime_ns: int = UNKNOWN
    audio_sha256: str = ""
    """Digest of the audio file, in an archive or not, or of the samples of a segment; empty if it was not read."""
    tokens: bytes = b""
    """Token ids, little-endian uint16."""
    token_length: int = UNKNOWN
    left_out: str = ""
    """Characters of the text that the tokenizer does not know."""
    mel_length: int = UNKNOWN
    """Frames, from the header of the file; from decoding if silence is trimmed."""
    seconds: float = 0.0
    notes: str = ""
    """Changes of the audio: resampled, mixed down, trimmed."""
    split: str = ""
    """Identifies, with bucket, shard and corpus, the shard that holds the clip, or for which it was rejected."""
    bucket: int = UNKNOWN
    shard: int = UNKNOWN
    position: int = UNKNOWN
    """Position of the record in the shard, from 0."""
    record_sha256: str = ""
    """Digest of the record's payload."""
    mel_sum: float = 0.0
    """Sum of the stored log-mel over the true frames; gives, with the next, statistics without reading shards."""
    mel_square_sum: float = 0.0
    quality: SignalQuality | None = None
    """Quality of the samples; None if it was not measured."""

    @property
    def is_kept(self) -> bool:
        """Whether the clip is in the cache."""
        return self.status == KEPT

    @property
    def shard_id(self) -> ShardId:
        """The clip's shard."""
        return ShardId(self.split, self.bucket, self.shard, self.clip.corpus)

    def rejected(self, reason: str, detail: str = "") -> Self:
        """The row of the clip, rejected."""
        return replace(self, status=REJECTED, reason=reason, detail=detail)


_CLIP = [field.name for field in fields(Clip)]
_RESULTS = [field.name for field in fields(IndexRow) if field.name not in ("clip", "quality")]
QUALITIES = [field.name for field in fields(SignalQuality)]
"""Columns of the clip's quality."""


def index_schema() -> "pa.Schema":
    """The columns of `index.parquet`: those of `Clip`, of `IndexRow` and of `SignalQuality`."""
    import pyarrow as pa

    kinds = {str: pa.large_string(), bytes: pa.large_binary(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    columns = [pa.field(field.name, kinds[field.type], nullable=False)
               for kind in (Clip, IndexRow) for field in fields(kind) if field.type in kinds]
    segment = [pa.field(name, pa.float64()) for name in ("start", "duration")]
    return pa.schema([*columns, *segment, *(pa.field(name, pa.float32()) for name in QUALITIES)])


def strings(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> list[str]:
    """The values of a column of text without nulls."""
    return cast("list[str]", column.to_pylist())


def with_column(
    table: "pa.Table", name: str, values: "Sequence[object] | pa.Array[Any] | pa.ChunkedArray[Any]"
) -> "pa.Table":
    """The table with the values of a column replaced by a list or an Arrow array."""
    import pyarrow as pa

    field = table.schema.field(name)
    column = pa.array(values, field.type) if isinstance(values, list | tuple) else values
    return table.set_column(table.schema.get_field_index(name), field, column)


def clip_table(clips: Sequence[Clip]) -> "pa.Table":
    """An Arrow table of clips."""
    import pyarrow as pa

    columns = {name: [getattr(clip, name) for clip in clips] for name in _CLIP}
    schema = index_schema()
    return pa.table(columns, pa.schema([schema.field(name) for name in _CLIP]))


def clips_of(table: "pa.Table") -> Iterator[Clip]:
    """The clips of an Arrow table with these columns, a batch of them at a time."""
    for start in range(0, len(table), _READ_ROWS):
        batch = table.select(_CLIP).slice(start, _READ_ROWS)
        yield from itertools.starmap(Clip, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def table_of(rows: Sequence[IndexRow]) -> "pa.Table":
    """An Arrow table of rows, with the columns of an index."""
    import pyarrow as pa

    columns: dict[str, list[object]] = {name: [getattr(row.clip, name) for row in rows] for name in _CLIP}
    columns |= {name: [getattr(row, name) for row in rows] for name in _RESULTS}
    columns |= {name: [getattr(row.quality, name, None) for row in rows] for name in QUALITIES}
    return pa.table(columns, index_schema())


def rows_of(table: "pa.Table") -> list[IndexRow]:
    """The rows of an Arrow table with the columns of an index."""
    results = zip(*(table[name].to_pylist() for name in _RESULTS), strict=True)
    qualities = zip(*(table[name].to_pylist() for name in QUALITIES), strict=True)
    return [
        IndexRow(clip=clip, quality=None if None in quality else SignalQuality(*quality),
                 **dict(zip(_RESULTS, values, strict=True)))
        for clip, values, quality in zip(clips_of(table), results, qualities, strict=True)
    ]


@contextmanager
def readable_index(path: Path) -> Iterator["pq.ParquetFile"]:
    """Open an index as a `pyarrow.parquet.ParquetFile`; raises `LockstepError` for a broken file, while reading too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fix = repair_command(path.parent)
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(index_schema()):
                raise LockstepError(str(path), found="columns differ from this version's", fix=fix, exit_code=1)
            yield file
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})", fix=fix, exit_code=1) from None


def read_index(path: Path) -> list[IndexRow]:
    """Rows of `index.parquet`; raises `LockstepError` if it cannot be read or its columns differ."""
    import pyarrow as pa

    with readable_index(path) as file:
        return [row for batch in file.iter_batches(_READ_ROWS) for row in rows_of(pa.table(batch))]


def find_rows(path: Path, ids: Sequence[str]) -> dict[str, IndexRow]:
    """Kept rows of `index.parquet` by clip id, of a few ids: memory does not grow with the index."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted, found = pa.array(ids, pa.large_string()), dict[str, IndexRow]()
    with readable_index(path) as file:
        for batch in file.iter_batches(_READ_ROWS):
            few = batch.filter(pc.and_(pc.equal(batch["status"], KEPT), pc.is_in(batch["id"], wanted)))
            found |= {row.clip.id: row for row in rows_of(pa.table(few))}
    return found


def speaker_languages(path: Path) -> dict[str, str]:
    """Return the language of most of each speaker's clips in `index.parquet`; errors as in `read_index`."""
    with readable_index(path) as file:
        counts = (
            file.read(columns=["speaker", "language"]).group_by(["speaker", "language"]).aggregate([([], "count_all")])
        )
    rows = sorted(counts.to_pylist(), key=lambda row: (row["count_all"], row["language"]))
    return {row["speaker"]: row["language"] for row in rows}  # the last one of a speaker stays


def kept_rows(rows: Iterable[IndexRow]) -> list[IndexRow]:
    """The rows of clips that are in the cache."""
    return [row for row in rows if row.is_kept]


def clip_of_crop(crop: str) -> str:
    """Return the id of the clip from which a crop was cut: `ID` of `ID/3`."""
    return crop.rpartition("/")[0]
