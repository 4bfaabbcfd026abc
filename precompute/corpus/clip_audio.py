"""The audio of a clip: a file, or a segment of a longer recording."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

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


def audio_header(source: AudioSource, clip: Clip) -> Header:
    """Length, rate and channels of the clip alone; raises `AudioProblem` or `OSError`."""
    return read_header(source, _segment(clip))


def read_audio(source: AudioSource, clip: Clip) -> ClipAudio:
    """Decode a clip; raises `AudioProblem` or `OSError`."""
    segment = _segment(clip)
    if segment is not None:
        recording = read_recording(source, segment)
        return ClipAudio(recording=recording, sha256=recording.sha256)
    data = source if isinstance(source, bytes) else source.read_bytes()
    return ClipAudio(recording=read_recording(data), sha256=hashlib.sha256(data).hexdigest())


def audio_digest(source: AudioSource, clip: Clip) -> str:
    """What `read_audio` gives as digest, without decoding where that is not needed; raises as it does."""
    if _segment(clip) is not None:
        return read_audio(source, clip).sha256
    return hashlib.sha256(source if isinstance(source, bytes) else source.read_bytes()).hexdigest()


def _segment(clip: Clip) -> Segment | None:
    return None if clip.start is None or clip.duration is None else Segment(clip.start, clip.duration)
