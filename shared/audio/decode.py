"""Audio files, and segments of them, to mono float32 samples at the rate of the mel profile."""

import hashlib
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from xtts.shared.audio.signal_quality import SignalQuality, measure_signal

LARGEST_DECODED_BYTES = 2**28
"""A file that decodes to more is refused before it is decoded: an hour of mono, no clip of speech."""

_LOWEST_RATE, _HIGHEST_RATE = 1_000, 768_000
"""Hz; beyond them a header is broken, and resampling would multiply the memory."""
_RESAMPLED = re.compile(r"resampled from (\d+) Hz")
"""As `Header.notes` says it; the index keeps it."""
_CUT_EXACTLY = ("PCM_", "FLOAT", "DOUBLE", "ULAW", "ALAW")
"""Encodings in which a sample does not depend on those before it; others decode differently after a seek."""
_LEAD_IN_SECONDS = 1.0
"""Decoded and dropped before a segment of an mp3 or Vorbis file: from there on it is the whole file's, to 1e-7."""
_SIZE_MISMATCH = re.compile(r"^ *(?:data|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
"""Bytes that a header promises and that are there, as libsndfile's log has them where they differ."""
_STREAMED_BYTES = 0x7FFF_0000
"""Larger sizes are placeholders of programs that write a stream: 0xFFFFFFFF, about 0x7FFFFFFF."""
_UNREAD_OGG = "Junk after the last page"
"""What libsndfile's log says of an Ogg file that ends within a page or holds several streams, of which it reads one."""
_SILENT_SHARE, _CANCELLED_SHARE = 1e-4, 0.1
"""Shares of the loudest channel's power below which a channel is silent, and a mean has cancelled out."""
_OPEN_RECORDINGS = 8
"""Recordings that a process keeps open to cut segments from them."""
_ROUNDING_SECONDS = 0.01
"""Lists round times: a segment may end so much after its recording, and one that begins with its recording and ends so
much before or after it is all of it."""


class AudioProblem(Exception):
    """Why a clip's audio cannot be used: a reason of the index, and details."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a recording, in seconds."""

    start: float
    duration: float


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a file says about itself before it is decoded."""

    frames: int
    """Samples per channel, of the segment if only a segment is meant."""
    rate: int
    channels: int
    first: int = 0
    """The segment's first sample."""

    def samples_at(self, rate: int) -> int:
        """S after resampling to `rate`, rounded to the nearest."""
        return (2 * self.frames * rate + self.rate) // (2 * self.rate)

    def notes(self, rate: int) -> str:
        """What decoding will do beyond reading, for the index."""
        parts = []
        if self.channels > 1:
            parts.append(f"mixed down from {self.channels} channels")
        if self.rate != rate:
            parts.append(f"resampled from {self.rate} Hz")
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Samples as the file holds them."""

    header: Header
    samples: np.ndarray
    """int16 or float32, [S, channels]."""
    file_sha256: str = ""
    """Digest of the whole file; empty for a segment, and where nobody asked for it."""

    @cached_property
    def mono(self) -> np.ndarray:
        """float32[S] at the file's own rate: the mean of the non-silent channels, or the loudest."""
        # 16-bit samples are scaled here, which gives libsndfile's floats in half its time.
        scaled = self.samples * np.float32(1 / 32768) if self.samples.dtype == np.int16 else self.samples
        return np.ascontiguousarray(scaled[:, 0] if self.header.channels == 1 else _mixed_down(scaled))

    def at(self, rate: int) -> np.ndarray:
        """`mono` resampled to `rate`."""
        return self.mono if self.header.rate == rate else _resample(self.mono, self.header, rate)

    @property
    def quality(self) -> SignalQuality | None:
        """What is measured on it, before resampling, trimming and scaling."""
        return measure_signal(self.mono, self.header.rate)

    @property
    def sha256(self) -> str:
        """Digest of the file, else of the samples, their type, rate and channels."""
        about = f"{self.samples.dtype} {self.header.rate} {self.header.channels}\n"
        return self.file_sha256 or hashlib.sha256(about.encode() + self.samples.tobytes()).hexdigest()


AudioSource = Path | bytes
"""A file, or the bytes of one."""


def read_header(source: AudioSource, segment: Segment | None = None) -> Header:
    """Read length, rate and channels, of a segment if one is given; raises `AudioProblem` for what cannot be used."""
    if (len(source) if isinstance(source, bytes) else os.path.getsize(source)) == 0:
        raise AudioProblem("empty audio", "a file of 0 bytes")
    with _opened(source) if segment is None else _recording(source) as file:
        return _check(file, segment)


def read_recording(source: AudioSource, segment: Segment | None = None) -> Recording:
    """Decode a file or a segment of it, which is found by seeking; raises `AudioProblem`."""
    with _opened(source) if segment is None else _recording(source) as file:
        header = _check(file, segment)
        if segment is None or file.subtype.startswith(_CUT_EXACTLY):
            samples = _read(file, header, lead_in=0)
        else:  # the samples must not depend on what was read before
            with _opened(source) as reopened:
                samples = _read(reopened, header, lead_in=min(header.first, round(_LEAD_IN_SECONDS * header.rate)))
    if len(samples) != header.frames:
        raise AudioProblem("unreadable audio", f"{len(samples)} samples decoded, the header says {header.frames}")
    return Recording(header=header, samples=samples)


def decode(source: AudioSource, *, rate: int) -> np.ndarray:
    """Decode a whole file to float32[S]: mixed down, then resampled to `rate`."""
    return read_recording(source).at(rate)


def source_rate(notes: str, rate: int) -> int:
    """Hz of a file whose `Header.notes(rate)` these are."""
    found = _RESAMPLED.search(notes)
    return int(found[1]) if found else rate


@contextmanager
def _opened(source: AudioSource) -> Iterator[Any]:
    with _problems(), soundfile.SoundFile(io.BytesIO(source) if isinstance(source, bytes) else str(source)) as file:
        yield file


@contextmanager
def _recording(source: AudioSource) -> Iterator[Any]:
    """A file that stays open for its other segments, unless something is wrong with it."""
    if isinstance(source, bytes):
        with _opened(source) as file:
            yield file
        return
    try:
        with _problems():
            status = os.stat(source)
            yield _open_recording(str(source), status.st_ino, status.st_size, status.st_mtime_ns)
    except AudioProblem:
        _open_recording.cache_clear()
        raise


@lru_cache(maxsize=_OPEN_RECORDINGS)
def _open_recording(path: str, *_version: int) -> soundfile.SoundFile:
    return soundfile.SoundFile(path)


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except soundfile.LibsndfileError as error:  # its own text holds the path, which the index must not depend on
        raise AudioProblem("unreadable audio", str(error.error_string)[:200]) from None
    except (soundfile.SoundFileError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise AudioProblem("unreadable audio", reason or "not readable as audio") from None


def _check(file: soundfile.SoundFile, segment: Segment | None) -> Header:
    header = Header(frames=file.frames, rate=file.samplerate, channels=file.channels)
    if not _LOWEST_RATE <= header.rate <= _HIGHEST_RATE:
        raise AudioProblem("unreadable audio", f"a rate of {header.rate} Hz")
    if segment is not None:
        header = _cut(header, segment)
    else:
        _refuse_cut_off(file.extra_info)
    if header.frames <= 0:
        raise AudioProblem("empty audio", "no samples")
    if header.frames * header.channels * 4 > LARGEST_DECODED_BYTES:
        raise AudioProblem("too long audio", f"{header.frames / header.rate:.0f} s of {header.channels} channels")
    return header


def _refuse_cut_off(log: str) -> None:
    """Raise `AudioProblem` where a file holds less than its header says; log: libsndfile's."""
    for promised, there in _SIZE_MISMATCH.findall(log):
        if int(there) + 1 < int(promised) < _STREAMED_BYTES:  # a byte of padding may be missing
            raise AudioProblem("unreadable audio", f"cut off: {there} bytes, the header says {promised}")
    if _UNREAD_OGG in log:
        raise AudioProblem("unreadable audio", "cut off, or several streams in one file")


def _mixed_down(channels: np.ndarray) -> np.ndarray:
    """float32[S, channels] -> float32[S]: the mean of the non-silent channels, or the loudest if they cancel out.

    A constant offset is silence.
    """
    power = channels.var(axis=0, dtype=np.float64)
    if not np.isfinite(power).all():
        return np.asarray(channels.mean(axis=1))
    mixed = channels[:, power >= _SILENT_SHARE * power.max()].mean(axis=1, dtype=np.float32)
    cancelled = mixed.var(dtype=np.float64) < _CANCELLED_SHARE * power.max()
    return channels[:, int(power.argmax())] if cancelled else mixed


def _read(file: soundfile.SoundFile, header: Header, *, lead_in: int) -> np.ndarray:
    """int16 or float32, [S, channels]."""
    if file.tell() != header.first - lead_in:
        file.seek(header.first - lead_in)
    kind = "int16" if file.subtype == "PCM_16" else "float32"
    samples: np.ndarray = file.read(lead_in + header.frames, dtype=kind, always_2d=True)
    return samples[lead_in:]


def _cut(header: Header, segment: Segment) -> Header:
    """The header of a segment, its ends rounded to the nearest samples."""
    first, end = round(segment.start * header.rate), round((segment.start + segment.duration) * header.rate)
    beyond = (end - header.frames) / header.rate
    if first == 0 and abs(beyond) <= _ROUNDING_SECONDS:
        return header
    if first < 0 or beyond > _ROUNDING_SECONDS:
        found = f"{segment.duration:g} s from {segment.start:g} s on, of {header.frames / header.rate:g} s"
        raise AudioProblem("unreadable audio", f"a segment of {found}")
    return replace(header, first=first, frames=min(end, header.frames) - first)


def _resample(mono: np.ndarray, header: Header, rate: int) -> np.ndarray:
    import soxr  # only those who need it wait for it

    out = soxr.resample(mono, header.rate, rate, quality="HQ")
    # soxr may return one sample more or less than the exact ratio; the header alone has to give the length.
    missing = header.samples_at(rate) - len(out)
    return np.pad(out, (0, missing)) if missing > 0 else out[: len(out) + missing]
