"""The audio of a clip, a file or a segment of one: reading it, and detecting whether it has changed."""

import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path
from socket import gethostname

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.shared.audio.decode import AudioProblem, AudioSource, Header, Recording, Segment, read_header, read_recording
from xtts.shared.cache.clip_index import UNDECIDED, UNKNOWN, Clip, IndexRow
from xtts.shared.errors import LockstepError


def size_and_time(path: Path) -> tuple[int, int]:
    """Return size and modification time (ns) of a regular file, else `UNKNOWN`: reading a pipe might block.

    The time is wrapped to the 64 bits of the index: some disks have dates beyond the year 2262.
    """
    try:
        status = os.stat(path)
    except OSError:
        return UNKNOWN, UNKNOWN
    time = (status.st_mtime_ns + 2**63) % 2**64 - 2**63
    return (status.st_size, time) if stat.S_ISREG(status.st_mode) else (UNKNOWN, UNKNOWN)


def with_file(clip: Clip, recipe: RecordRecipe) -> IndexRow:
    """Return a row with the size and modification time of the clip's file; no file is opened."""
    size, time = size_and_time(recipe.path(clip))
    return IndexRow(clip=clip, source_bytes=size, source_mtime_ns=time)


def audio_header(source: AudioSource, clip: Clip) -> Header:
    """Return length, rate and channels of the clip, without the rest of its file; raises `AudioProblem`, `OSError`."""
    return read_header(source, _segment(clip))


def read_audio(source: AudioSource, clip: Clip, channel: int | None = None) -> Recording:
    """Decode a clip, with its digest for the index; channel: `audio.channel`. Raises `AudioProblem`, `OSError`."""
    segment = _segment(clip)
    if segment is not None:
        return read_recording(source, segment, channel)
    data = source if isinstance(source, bytes) else source.read_bytes()
    return replace(read_recording(data, None, channel), file_sha256=hashlib.sha256(data).hexdigest())


def audio_digest(clip: Clip, recipe: RecordRecipe) -> str:
    """Return the digest of `read_audio`, decoding only segments; empty if the audio cannot be read."""
    try:
        source = recipe.audio(clip)
        if _segment(clip) is not None:
            return read_audio(source, clip).sha256
        return hashlib.sha256(source if isinstance(source, bytes) else source.read_bytes()).hexdigest()
    except (OSError, AudioProblem):
        return ""


def _segment(clip: Clip) -> Segment | None:
    return None if clip.start is None or clip.duration is None else Segment(clip.start, clip.duration)


def check_unchanged(row: IndexRow, recipe: RecordRecipe) -> None:
    """Raise a `LockstepError` if a clip's file has changed during the build or is not visible on this machine."""
    path = recipe.path(row.clip)
    size, time = size_and_time(path)
    if (size, time) == (row.source_bytes, row.source_mtime_ns):
        return
    problem, fix = "changed while the cache was being built", "leave the corpus unchanged"
    if size == UNKNOWN:
        problem, fix = f"gone, or not visible from {gethostname()}", "leave the corpus where every machine sees it"
    raise LockstepError(str(path), found=problem, fix=f"{fix} and run the same command again", exit_code=1) from None


def same_file(row: IndexRow, other: IndexRow) -> bool:
    """Whether two rows have the same audio: equal path, segment, size and modification time, or equal digests."""
    first, second = ((r.clip.audio_key, r.source_bytes, r.source_mtime_ns) for r in (row, other))
    return first == second or (bool(row.audio_sha256) and row.audio_sha256 == other.audio_sha256)


def may_be_same_file(row: IndexRow, other: IndexRow) -> bool:
    """Whether two rows may have the same audio: `same_file`, or no sign of a change.

    If `other` was rejected and so has no digest, the only sign is another size, of a file that holds this clip alone.
    """
    no_sign = row.source_bytes == other.source_bytes or (row.clip.is_part and row.source_bytes != UNKNOWN)
    return same_file(row, other) or (no_sign and not other.audio_sha256)


def same_clip(row: IndexRow, other: IndexRow) -> bool:
    """Whether writing this clip with the same settings would reproduce the record of `other`."""
    if row.status != UNDECIDED or UNKNOWN in (other.token_length, other.mel_length):
        return False
    first, second = (
        (r.clip.id, r.clip.speaker, r.clip.text, r.clip.language, r.token_length, r.mel_length) for r in (row, other)
    )
    return first == second and same_file(row, other)
