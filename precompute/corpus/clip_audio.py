"""The audio of a clip, a file or a part of one: finding and reading it, and whether it is what an earlier build had."""

import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path
from socket import gethostname

from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.shared.audio.decode import AudioProblem, AudioSource, Header, Recording, Segment, read_header, read_recording
from xtts.shared.cache.clip_index import UNDECIDED, UNKNOWN, Clip, IndexRow
from xtts.shared.errors import LockstepError


def find_audio(path: Path) -> tuple[int, int]:
    """Size and time of a file; `UNKNOWN` where there is no regular one: a pipe would block, a device never end."""
    try:
        status = os.stat(path)
    except OSError:
        return UNKNOWN, UNKNOWN
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (UNKNOWN, UNKNOWN)


def with_file(clip: Clip, extractor: FeatureExtractor) -> IndexRow:
    """A clip with the size and the time of its file; nothing is opened."""
    size, time = find_audio(extractor.path(clip))
    return IndexRow(clip=clip, source_bytes=size, source_mtime_ns=time)


def audio_header(source: AudioSource, clip: Clip) -> Header:
    """Length, rate and channels of the clip alone; raises `AudioProblem` or `OSError`."""
    return read_header(source, _segment(clip))


def read_audio(source: AudioSource, clip: Clip) -> Recording:
    """Decode a clip, with the digest that the index has; raises `AudioProblem` or `OSError`."""
    segment = _segment(clip)
    if segment is not None:
        return read_recording(source, segment)
    data = source if isinstance(source, bytes) else source.read_bytes()
    return replace(read_recording(data), file_sha256=hashlib.sha256(data).hexdigest())


def audio_digest(clip: Clip, extractor: FeatureExtractor) -> str:
    """The digest that `read_audio` gives, without decoding where that is not needed; empty where it cannot be read."""
    try:
        source = extractor.audio(clip)
        if _segment(clip) is not None:
            return read_audio(source, clip).sha256
        return hashlib.sha256(source if isinstance(source, bytes) else source.read_bytes()).hexdigest()
    except (OSError, AudioProblem):
        return ""


def _segment(clip: Clip) -> Segment | None:
    return None if clip.start is None or clip.duration is None else Segment(clip.start, clip.duration)


def check_unchanged(row: IndexRow, extractor: FeatureExtractor) -> None:
    """A `LockstepError` where a clip's file is not the one that the build found, or is not seen from this machine."""
    path = extractor.path(row.clip)
    there, was = find_audio(path), (row.source_bytes, row.source_mtime_ns)
    if there == was:
        return
    found, fix = "changed while the cache was being built", "let the corpus rest"
    if there[0] == UNKNOWN:
        found, fix = f"gone, or not seen from {gethostname()}", "let the corpus rest where every machine sees it"
    raise LockstepError(str(path), found=found, fix=f"{fix} and run the same command again", exit_code=1) from None


def same_file(row: IndexRow, other: IndexRow) -> bool:
    """Whether two rows saw the same audio, by path, part, size and modification time, else by digest."""
    facts = [(one.clip.audio_place, one.source_bytes, one.source_mtime_ns) for one in (row, other)]
    return facts[0] == facts[1] or (bool(row.audio_sha256) and row.audio_sha256 == other.audio_sha256)


def may_be_same_file(row: IndexRow, other: IndexRow) -> bool:
    """`same_file`, or what nothing speaks against: of a clip that was rejected, `other` has no digest.

    Then a clip is taken to have changed only if it has a file of its own, which is of another size.
    """
    if same_file(row, other):
        return True
    if UNKNOWN in (row.source_bytes, other.source_bytes) or other.audio_sha256:
        return False
    return row.clip.is_part or row.source_bytes == other.source_bytes


def same_clip(row: IndexRow, other: IndexRow) -> bool:
    """Whether writing this clip now would give the record that `other` is of, the settings being the same."""
    if row.status != UNDECIDED or UNKNOWN in (other.token_length, other.mel_length):
        return False
    facts = [
        (one.clip.id, one.clip.speaker, one.clip.text, one.clip.language, one.token_length, one.mel_length)
        for one in (row, other)
    ]
    return facts[0] == facts[1] and same_file(row, other)
