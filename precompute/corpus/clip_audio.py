"""The audio of a clip: a file of its own, a part of an archive (tar, Parquet), or a segment of a longer recording."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from xtts.precompute.archives.parquet_rows import is_row, read_row
from xtts.precompute.archives.tar_files import read_member
from xtts.shared.audio.decode import AudioSource, Header, Recording, Segment, read_header, read_recording
from xtts.shared.cache.clip_index import AudioFile, Clip


@dataclass(frozen=True, kw_only=True)
class ClipAudio:
    """What a clip's audio holds."""

    recording: Recording
    sha256: str
    """As the ledger has it."""


def find_audio(path: Path) -> AudioFile | None:
    """Size and time of a clip's file; None where there is no regular one: a pipe would block, a device never end."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return AudioFile(status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def audio_header(path: Path, clip: Clip) -> Header:
    """Length, rate and channels of the clip alone; raises `AudioProblem` or `OSError`."""
    return read_header(_source(path, clip), _segment(clip))


def read_audio(path: Path, clip: Clip) -> ClipAudio:
    """Decode a clip; raises `AudioProblem` or `OSError`."""
    source, segment = _source(path, clip), _segment(clip)
    if segment is not None:
        recording = read_recording(source, segment)
        return ClipAudio(recording=recording, sha256=recording.sha256)
    return whole_audio(source.read_bytes() if isinstance(source, Path) else source)


def whole_audio(data: bytes) -> ClipAudio:
    """Decode the bytes of an audio file; raises `AudioProblem`."""
    return ClipAudio(recording=read_recording(data), sha256=hashlib.sha256(data).hexdigest())


def audio_digest(path: Path, clip: Clip) -> str:
    """What `read_audio` gives as digest, without decoding where that is not needed; raises as it does."""
    if _segment(clip) is not None:
        return read_audio(path, clip).sha256
    source = _source(path, clip)
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with source.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source(path: Path, clip: Clip) -> AudioSource:
    """The file, or the bytes of its member."""
    if is_row(clip):
        return read_row(path, clip.member)
    return read_member(path, clip.member) if clip.member else path


def _segment(clip: Clip) -> Segment | None:
    return None if clip.start is None or clip.duration is None else Segment(clip.start, clip.duration)
