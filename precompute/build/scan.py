"""The first pass: what can be known of every clip from its file header and its text alone."""

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.corpus.listing import Clip
from xtts.shared.audio.decode import AudioProblem, read_header
from xtts.shared.cache.clip_index import KEPT, REJECTED, IndexRow

UNNORMALISED = "no normalised column"
"""The note of a clip whose text is the raw one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedRow:
    """What an earlier build found out about a clip."""

    row: IndexRow
    audio: bool
    """The audio settings were the same."""
    text: bool
    """The text settings were the same."""


def start_row(clip: Clip, front_end: FrontEnd) -> IndexRow:
    """A row with what the corpus and the file system say."""
    size, time = _size_and_time(front_end.path(clip.source))
    return IndexRow(
        id=clip.id, speaker=clip.speaker, text=clip.text, text_sha256=clip.text_sha256,
        source=clip.source, source_bytes=size, source_mtime_ns=time,
        status=REJECTED if clip.reason else KEPT, reason=clip.reason, notes="" if clip.normalised else UNNORMALISED,
    )  # fmt: skip


def _size_and_time(path: Path) -> tuple[int | None, int | None]:
    """Bytes and modification time of a regular file; a pipe would block, a device never end."""
    try:
        status = os.stat(path)
    except OSError:
        return None, None
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (None, None)


def same_file(row: IndexRow, other: IndexRow) -> bool:
    """Whether two rows saw the same audio, by path, size and modification time, else by digest."""
    stats = [(r.source, r.source_bytes, r.source_mtime_ns) for r in (row, other)]
    if stats[0] == stats[1]:
        return True
    return row.audio_sha256 is not None and row.audio_sha256 == other.audio_sha256


def same_strings(row: IndexRow, original: IndexRow) -> IndexRow:
    """A row back from a worker, with the long strings that the parent already holds: half of its memory."""
    return replace(
        row,
        id=original.id,
        speaker=original.speaker,
        text=original.text,
        text_sha256=original.text_sha256,
        source=original.source,
    )


def recall(row: IndexRow, cached: CachedRow | None) -> IndexRow | None:
    """The scanned row when an earlier build knows all of it, without opening a file."""
    if row.reason == "duplicate id":
        return row
    if cached is None or not (cached.audio and cached.text and same_file(row, cached.row)):
        return None
    if row.text_sha256 != cached.row.text_sha256:
        return None
    row = replace(row, text_sha256=cached.row.text_sha256)  # the same letters; a second copy would stay for the build
    return _recall_audio(_recall_text(row, cached.row), cached.row)


def scan_clips(
    front_end: FrontEnd, clips: Iterable[tuple[int, IndexRow, CachedRow | None]]
) -> list[tuple[int, IndexRow]]:  # fmt: skip
    """Scan a handful of numbered clips (runs in a worker, which would wait 0.2 s for what `survey` imports)."""
    return [(number, _scan_clip(row, cached, front_end)) for number, row, cached in clips]


def _scan_clip(row: IndexRow, cached: CachedRow | None, front_end: FrontEnd) -> IndexRow:
    row = _scan_text(row, front_end)
    if cached is not None and cached.audio:
        if not same_file(row, cached.row) and cached.row.audio_sha256 and row.source_bytes == cached.row.source_bytes:
            row = replace(row, audio_sha256=file_digest(row, front_end))
        if same_file(row, cached.row):
            return _recall_audio(row, cached.row)
    return _scan_audio(row, front_end)


def _scan_text(row: IndexRow, front_end: FrontEnd) -> IndexRow:
    tokens = front_end.tokenizer.encode(row.text)
    return _with_tokens(row, len(tokens.ids), tokens.unknown)


def _recall_text(row: IndexRow, cached: IndexRow) -> IndexRow:
    return _with_tokens(row, cached.token_length, cached.left_out)


def _with_tokens(row: IndexRow, length: int | None, left_out: str) -> IndexRow:
    reason = None if length else "no known symbols" if row.text else "empty text"
    status = REJECTED if reason else KEPT
    return replace(row, token_length=length, left_out=left_out, status=status, reason=reason)


def _recall_audio(row: IndexRow, cached: IndexRow) -> IndexRow:
    if cached.mel_length is None:
        return replace(row, status=REJECTED, reason=cached.reason, detail=cached.detail)
    notes = [row.notes, *(note for note in cached.notes.split("; ") if note != UNNORMALISED)]
    return replace(row, mel_length=cached.mel_length, seconds=cached.seconds, notes=_joined(notes))


def _joined(notes: Iterable[str]) -> str:
    return "; ".join(filter(None, notes))


def _scan_audio(row: IndexRow, front_end: FrontEnd) -> IndexRow:
    profile, path = front_end.profile, front_end.path(row.source or "")
    try:
        if row.source_bytes is None:
            raise AudioProblem("missing audio", "no such file, or not a regular one")
        header = read_header(path)
        samples, notes = header.samples_at(profile.sample_rate), [row.notes, header.notes(profile.sample_rate)]
        if front_end.trim_silence_db is not None:  # only decoding tells what is left
            whole, samples = samples, len(front_end.samples(path.read_bytes()))
            notes.append(f"trimmed {(whole - samples) / profile.sample_rate:.2f} s" if samples < whole else "")
    except AudioProblem as problem:
        return replace(row, status=REJECTED, reason=problem.reason, detail=problem.detail)
    except OSError as error:
        return replace(row, status=REJECTED, reason="unreadable audio", detail=error.strerror or "")
    return replace(
        row,
        mel_length=profile.frames(samples),
        seconds=samples / profile.sample_rate,
        notes=_joined(notes),
    )


def file_digest(row: IndexRow, front_end: FrontEnd) -> str | None:
    """Digest of a clip's audio file, or None where it cannot be read."""
    try:
        with open(front_end.path(row.source or ""), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
