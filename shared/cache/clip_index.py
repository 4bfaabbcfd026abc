"""`index.parquet`: one row per clip of the corpus, kept or rejected, through pyarrow; and what its rows are made of.

A build finds out one thing after the other, each with a type of its own: what the corpus says (`Clip`), the file, the
tokens, the audio, the place, the record. A later row refers to the earlier facts, so that no string is held twice.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.errors import LockstepError, repair_command

KEPT, REJECTED, UNDECIDED = "kept", "rejected", "undecided"
"""What `status` may be; the last one of a row that a build is at work on, never in an index."""
DUPLICATE, NO_LETTERS, UNNORMALISED = "duplicate id", "no known letters", "no normalised column"
MISSING_AUDIO = "missing audio"
REASONS = (
    MISSING_AUDIO, "unreadable audio", "empty audio", "empty text", NO_LETTERS, "too long text", "too long audio",
    "too short audio", DUPLICATE, "non-finite mel", "too low sample rate", "too slow speech", "too fast speech",
    "too quiet", "too noisy", "clipped", "too much silence",
)  # fmt: skip
"""The closed list of why a clip is rejected."""
_IN_ARCHIVE = re.compile(r"(.+\.(?:parquet|[tT][aA][rR]))/(\d+\+\d+|\d+(?::.+)?)", re.DOTALL)
_READ_ROWS = 2**12  # the values of all columns of so many rows are held twice for a moment
_ANY_ROWS = 2**25
"""Rows that a file of any size may claim; further ones take a byte each at the least, by their digests alone."""
QUALITIES = tuple(fact.name for fact in fields(SignalQuality))
"""Columns of what was measured."""
_COLUMNS = (
    "id", "speaker", "text", "status", "reason", "notes", "detail", "left_out", "split", "bucket", "shard", "position",
    "token_length", "mel_length", "seconds", "source", "source_bytes", "source_mtime_ns", "audio_sha256",
    "text_sha256", "record_sha256", "mel_sum", "mel_square_sum", "language", *QUALITIES,
    "start", "duration", "corpus",
)  # fmt: skip
_OF_ANY_ROW = frozenset(("id", "speaker", "text", "status", "notes", "detail", "left_out", "language", "corpus"))
"""Columns that are never null."""


@dataclass(frozen=True, slots=True)
class Clip:
    """What the corpus says of a clip."""

    id: str
    speaker: str
    text: str
    source: str
    """Audio file, relative to its corpus; absolute where it lies elsewhere; in an archive with its place there:
    `a.tar/512+44144` (first byte and size), `b.parquet/17` (the row)."""
    normalised: bool = False
    """The corpus gives the text in words, as the third column of LJSpeech does."""
    duplicate: bool = False
    """A line before has this id."""
    language: str = ""
    """ISO 639 code; empty for the language of the configuration."""
    start: float | None = None
    """Where the clip begins in a longer recording, in seconds; None if it is all of it."""
    duration: float | None = None
    """Seconds."""
    corpus: str = ""
    """Which of several corpora it is of; empty for the one without a name."""

    @property
    def audio_place(self) -> tuple[str, str, float | None, float | None]:
        """Which file of which corpus, and which part of it."""
        return self.corpus, self.source, self.start, self.duration

    @property
    def archive(self) -> tuple[str, str]:
        """(archive, place in it) of `source`; empty where it is a file of its own, or a folder is called so."""
        match = _IN_ARCHIVE.fullmatch(self.source)
        return (match[1], match[2]) if match else ("", "")

    @property
    def is_part(self) -> bool:
        """Whether its file holds more than this clip: its size and time say nothing of the clip."""
        return self.archive != ("", "") or self.start is not None

    @property
    def text_sha256(self) -> str:
        """Digest of the transcript."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AudioFile:
    """The file as the scan found it; equal when size and time are."""

    source_bytes: int
    """Of the whole file, also where the clip is a part of it."""
    source_mtime_ns: int
    audio_sha256: str | None = field(default=None, compare=False)
    """Digest of the audio's file, wherever that lies, or of the samples of a segment; None where it was not read."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """What the tokenizer makes of the text."""

    token_length: int
    left_out: str
    """Characters of the text that the tokenizer does not know."""


@dataclass(frozen=True, slots=True)
class Audio:
    """What the file's header says, or decoding if silence is trimmed."""

    mel_length: int
    seconds: float
    notes: str
    """What is done to the audio: resampled, mixed down, trimmed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A shard."""

    split: str
    bucket: int
    shard: int
    corpus: str = ""
    """A shard holds clips of one corpus, and is counted among those of it."""


@dataclass(frozen=True, slots=True)
class Written:
    """A clip's record."""

    position: int
    """Place in the shard, from 0."""
    record_sha256: str
    """Digest of the record's payload."""
    audio_sha256: str
    mel_sum: float
    """Sum of the stored log-mel over the true frames; with the next, the corpus statistics without reading shards."""
    mel_square_sum: float


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a clip is not in the cache."""

    reason: str
    """One of `REASONS`."""
    detail: str = ""
    """Particulars."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """The ledger's row of a clip that is in the cache."""

    clip: Clip
    file: AudioFile
    tokens: TokenCount
    audio: Audio
    place: Place
    written: Written
    quality: SignalQuality | None = None
    """None in a cache without mels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """The ledger's row of a clip that is not; the facts that were never determined are None."""

    clip: Clip
    file: AudioFile | None = None
    tokens: TokenCount | None = None
    audio: Audio | None = None
    place: Place | None = None
    """Where it was to go, when writing its record showed what is wrong with it."""
    rejection: Rejection
    quality: SignalQuality | None = None
    """What a filter by quality measured, when it is the reason."""


IndexRow = Kept | Rejected
_FACTS = {
    "place": Place, "clip": Clip, "file": AudioFile, "tokens": TokenCount, "audio": Audio, "rejection": Rejection,
    "written": Written, "quality": SignalQuality,
}  # fmt: skip
"""Where two have a column of one name, the later one says what it holds."""


class _Row(Protocol):
    """What every row of a ledger has, finished or not."""

    @property
    def clip(self) -> Clip: ...
    @property
    def audio(self) -> Audio | None: ...
    @property
    def quality(self) -> SignalQuality | None: ...


Row = TypeVar("Row")


def notes_of(row: _Row) -> str:
    """What is to be known of a clip's text and audio, joined by semicolons."""
    notes = "" if row.clip.normalised else UNNORMALISED, row.audio.notes if row.audio else ""
    return "; ".join(filter(None, notes))


def to_columns(rows: Sequence[_Row]) -> dict[str, list[Any]]:
    """The values of the columns of `index.parquet`."""
    status = {Kept: KEPT, Rejected: REJECTED}
    columns: dict[str, list[Any]] = {
        "status": [status.get(type(row), UNDECIDED) for row in rows],
        "text_sha256": [row.clip.text_sha256 for row in rows],
    }
    for name, kind in _FACTS.items():
        facts = [getattr(row, name, None) for row in rows]
        for column in fields(kind):
            unknown = "" if column.name in _OF_ANY_ROW else None
            columns[column.name] = [getattr(fact, column.name, unknown) for fact in facts]
    columns["notes"] = [notes_of(row) for row in rows]
    return {name: columns[name] for name in _COLUMNS}


def from_columns(columns: Mapping[str, Sequence[Any]]) -> list[IndexRow]:
    """The rows of these columns; a `ValueError` when a row lacks what its status says."""
    return rows_from_columns(columns, finished_row)


def rows_from_columns(columns: Mapping[str, Sequence[Any]], make: Callable[..., Row]) -> list[Row]:
    """What `make` makes of the status and the facts of each row, as `finished_row` takes them."""
    columns = {
        **columns,
        "normalised": [not notes.startswith(UNNORMALISED) for notes in columns["notes"]],
        "notes": [notes.removeprefix(UNNORMALISED).removeprefix("; ") for notes in columns["notes"]],
        "duplicate": [reason == DUPLICATE for reason in columns["reason"]],
    }
    facts = {name: _facts(kind, columns) for name, kind in _FACTS.items()}
    return [make(*values) for values in zip(columns["status"], *facts.values(), strict=True)]


def _facts(kind: Any, columns: Mapping[str, Sequence[Any]]) -> list[Any]:  # noqa: ANN401 - one of `_FACTS`
    """Objects of one kind, None where a value is missing."""
    needed = sum(fact.default is MISSING for fact in fields(kind))
    values = zip(*(columns[fact.name] for fact in fields(kind)), strict=True)
    return [None if None in row[:needed] else kind(*row) for row in values]


def finished_row(status: str, *facts: Any) -> IndexRow:  # noqa: ANN401 - in the order of `_FACTS`
    """A row of an index; a `ValueError` when it lacks what its status says."""
    place, clip, file, tokens, audio, rejection, written, quality = facts
    if status == KEPT and clip and file and tokens and audio and place and written:
        return Kept(clip=clip, file=file, tokens=tokens, audio=audio, place=place, written=written, quality=quality)
    if status == REJECTED and clip and rejection:
        return Rejected(
            clip=clip, file=file, tokens=tokens, audio=audio, place=place, rejection=rejection, quality=quality
        )
    raise ValueError(f"a row that is {status!r:.20} lacks what such a row has")


def index_schema() -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The columns of `index.parquet`."""
    import pyarrow as pa

    kinds: dict[Any, Any] = {int: pa.int64(), float: pa.float64(), float | None: pa.float64()}
    types = {fact.name: kinds.get(fact.type) for kind in _FACTS.values() for fact in fields(kind)}
    types |= dict.fromkeys(QUALITIES, pa.float32())
    return pa.schema(
        pa.field(name, types.get(name) or pa.string(), nullable=name not in _OF_ANY_ROW) for name in _COLUMNS
    )


@contextmanager
def readable_index(path: Path) -> Iterator[Any]:
    """The `pyarrow.parquet.ParquetFile`, open; a `LockstepError` for all that is wrong with it, then and later."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fix = repair_command(path.parent)
    try:
        with pq.ParquetFile(path) as file:
            size, rows = path.stat().st_size, file.metadata.num_rows
            wrong = f"{rows} rows in {size} bytes" if rows > max(_ANY_ROWS, size) else ""
            if not file.schema_arrow.equals(index_schema()):
                wrong = "other columns than this version writes"
            if wrong:
                raise LockstepError(str(path), found=wrong, fix=fix, exit_code=1)
            yield file
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})", fix=fix, exit_code=1) from None


def read_index(path: Path) -> list[IndexRow]:
    """Rows of `index.parquet`; a `LockstepError` when it cannot be read or has other columns."""
    return list(iter_index(path))


def iter_index(path: Path) -> Iterator[IndexRow]:
    """The rows one by one, as `read_index` gives them."""
    with readable_index(path) as file:
        columns = [name for name in _COLUMNS if name != "text_sha256"]  # the text is there
        for batch in file.iter_batches(_READ_ROWS, columns=columns):
            yield from from_columns(batch.to_pydict())
