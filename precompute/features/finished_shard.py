"""A shard that exists, and the sidecar that says so: its worker writes both, staging moves them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from xtts.precompute.features.scan import Scanned, same_file
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.clip_index import IndexRow, Kept, Place, Rejection, Written, from_columns, to_columns


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A shard that exists, with all that decided its bytes."""

    file: str
    """Path inside the cache, with the digest of its content."""
    settings: str
    records: int
    bytes: int
    sha256: str
    rows: list[IndexRow]
    """Its clips in order, those included that were rejected while it was written."""
    bytes_with_mels: int = 0
    """As the cache spec has it."""

    def holds(self, clips: Sequence[Scanned], settings: str) -> bool:
        """Whether writing these clips now would give these very bytes."""
        same_clips = len(self.rows) == len(clips) and all(map(_same_clip, clips, self.rows))
        return same_clips and self.settings == settings


def _same_clip(row: Scanned, other: IndexRow) -> bool:
    if other.tokens is None or other.audio is None:
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


def sidecar_of(shard: Path) -> Path:
    """Where the sidecar of a shard lies, wherever the shard does."""
    return shard.with_suffix(".json")


def write_sidecar(shard: Path, done: Finished) -> None:
    """Write the sidecar of a shard beside it."""
    content = {field.name: getattr(done, field.name) for field in fields(Finished)}
    sidecar_of(shard).write_bytes(json.dumps({**content, "rows": to_columns(done.rows)}).encode())


def read_sidecar(path: Path) -> Finished | None:
    """What a sidecar says; None where there is none that can be read: its shard is an unfinished one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Finished(**{**content, "rows": from_columns(content["rows"])})
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
