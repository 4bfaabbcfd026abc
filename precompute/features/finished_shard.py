"""A shard that exists, and the sidecar that says so: its worker writes both, staging moves them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from xtts.precompute.features.row_parts import read_table, table_bytes
from xtts.precompute.features.scan import Scanned, ScannedRow, same_file
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.clip_index import IndexRow, Kept, Place, Rejection, Written
from xtts.shared.cache.index_writer import table_of

_FACTS = b"shard"
"""Key of the metadata of a sidecar's Arrow file."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A shard that exists, with all that decided its bytes but its clips."""

    file: str
    """Path inside the cache, with the digest of its content."""
    settings: str
    """Digest of all that decides the shard's bytes besides its clips."""
    records: int
    bytes: int
    sha256: str
    bytes_with_mels: int
    """As the cache spec has it."""


def same_clip(row: ScannedRow, other: IndexRow) -> bool:
    """Whether writing this clip now would give the record that `other` is of, the settings being the same."""
    if not isinstance(row, Scanned) or other.tokens is None or other.audio is None:
        return False
    facts = [(r.id, r.speaker, r.text, r.language) for r in (row.clip, other.clip)]
    lengths = (row.tokens.token_length, row.audio.mel_length) == (other.tokens.token_length, other.audio.mel_length)
    return facts[0] == facts[1] and lengths and same_file(row, other)


def written_row(row: Scanned, place: Place, outcome: Written | Rejection, quality: SignalQuality | None) -> IndexRow:
    """The ledger's row of a clip after writing its shard, where its quality may have been measured."""
    if isinstance(outcome, Written):
        return Kept(
            clip=row.clip, file=row.file, tokens=row.tokens, audio=row.audio, place=place, written=outcome,
            quality=quality or row.quality,
        )  # fmt: skip
    return row.rejected(outcome, place)


def as_it_is_now(row: Scanned, outcome: IndexRow) -> IndexRow:
    """What an earlier build wrote of a clip, with path, time and notes of today."""
    return replace(outcome, clip=row.clip, file=row.file, audio=row.audio)


def sidecar_of(shard: Path) -> Path:
    """Where the sidecar of a shard lies, wherever the shard does."""
    return shard.with_suffix(".arrow")


def write_sidecar(shard: Path, done: Finished, rows: Sequence[IndexRow]) -> None:
    """Write the sidecar of a shard beside it: its clips in order, those included that were rejected by writing it."""
    metadata = {_FACTS: json.dumps(asdict(done)).encode()}
    sidecar_of(shard).write_bytes(table_bytes(table_of(rows).replace_schema_metadata(metadata)))


def read_sidecar(path: Path) -> Finished | None:
    """What a sidecar says; None where there is none that can be read: its shard is an unfinished one."""
    import pyarrow as pa

    try:
        return Finished(**json.loads(read_table(path).schema.metadata[_FACTS]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError, pa.ArrowException):
        return None
