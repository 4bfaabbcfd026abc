"""Audio files, and segments of them, to mono float32 samples at the rate of the mel profile."""

import hashlib
import io
import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import isinf
from pathlib import Path

import numpy as np
import soundfile

from xtts.shared.audio.signal_quality import SignalQuality, measure_signal
from xtts.shared.audio.unsaid_length import with_length
from xtts.shared.errors import POINTER, is_pointer

LARGEST_DECODED_BYTES = 2**28
"""Files that decode to more are refused before decoding: an hour of mono is not a clip."""

_LOWEST_RATE, _HIGHEST_RATE = 1_000, 768_000
"""Hz; a rate beyond them means a broken header, and resampling would multiply the memory."""
_RESAMPLED = re.compile(r"resampled from (\d+) Hz")
"""Text of `Header.notes`, which the index stores."""
_SEEKABLE = ("PCM_", "FLOAT", "DOUBLE", "ULAW", "ALAW")
"""Encodings whose samples do not depend on earlier ones; the others decode differently after a seek."""
_LEAD_IN_SECONDS = 1.0
"""Lead-in decoded and dropped before a segment of an mp3 or Vorbis file: the rest equals a full decoding to 1e-7."""
_SIZE_MISMATCH = re.compile(r"^ *(?:data|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
"""Bytes that a header promises and that the file has, in libsndfile's log if they differ."""
_STREAMED_BYTES = 0x7FFF_0000
"""Larger sizes are placeholders of programs that write streams: 0xFFFFFFFF, about 0x7FFFFFFF."""
_UNREAD_OGG = "Junk after the last page"
"""libsndfile's log of an Ogg file that ends inside a page, or has several streams, of which it reads one."""
_SILENT_SHARE, _CANCELLED_SHARE = 1e-4, 0.1
"""Shares of the loudest channel's power below which a channel is silent, and the channels' mean has cancelled out."""
_ROUNDING_SECONDS = 0.01
"""Tolerance for rounded times in lists: a segment from 0 to this close to the end is the whole recording."""
_BEYOND_SECONDS = 0.1
"""A segment may end this long after its recording, as times of subtitles and recognisers do: it is cut there."""


class AudioProblem(Exception):
    """A clip's audio cannot be used: the reason, as in the index, and details."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Segment:
    """An interval of a recording, in seconds."""

    start: float
    duration: float
    """Infinite up to the end of the recording."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """Length, rate and channels of a file or a segment, known before decoding."""

    samples: int
    """S, in the segment if there is one."""
    rate: int
    channels: int
    first: int = 0
    """The segment's first sample."""

    def samples_at(self, rate: int) -> int:
        """Return S after resampling to `rate` Hz, rounded to the nearest."""
        return (2 * self.samples * rate + self.rate) // (2 * self.rate)

    def notes(self, rate: int, channel: int | None = None) -> str:
        """Describe how decoding changes the samples, for the index; channel: that of `Recording`."""
        notes = []
        if self.channels > 1:
            mixed = f"mixed down from {self.channels} channels"
            notes.append(mixed if channel is None else f"channel {channel} of {self.channels}")
        if self.rate != rate:
            notes.append(f"resampled from {self.rate} Hz")
        return "; ".join(notes)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Samples as stored in a file."""

    header: Header
    samples: np.ndarray
    """int16 or float32, [S, channels]."""
    file_sha256: str = ""
    """Digest of the file; empty for a segment, or if not requested."""
    channel: int | None = None
    """The channel to take if there are several; None for the mean of those with sound."""

    @cached_property
    def mixed(self) -> np.ndarray:
        """float32[S, channels] at the file's rate: the channels that are mixed; raises `AudioProblem` without them."""
        # Scaling 16-bit samples here gives libsndfile's floats in half the time.
        scaled = self.samples * np.float32(1 / 32768) if self.samples.dtype == np.int16 else self.samples
        return np.asarray(scaled[:, channels_to_mix([scaled], self.channel)] if self.header.channels > 1 else scaled)

    @cached_property
    def mono(self) -> np.ndarray:
        """float32[S] at the file's rate: the mean of the non-silent channels, the loudest, or the one to take."""
        return np.ascontiguousarray(self.mixed[:, 0]) if self.mixed.shape[1] == 1 else self.mixed.mean(axis=1)

    def at(self, rate: int) -> np.ndarray:
        """Return `mono` resampled to `rate` Hz."""
        return self.mono if self.header.rate == rate else _resample(self.mono, self.header, rate)

    @property
    def quality(self) -> SignalQuality | None:
        """Measurements before resampling, trimming and scaling."""
        return measure_signal(self.mono, self.header.rate, self.mixed if self.mixed.shape[1] > 1 else None)

    @property
    def sha256(self) -> str:
        """Digest of the file or, without one, of the samples, their type, rate and channels."""
        layout = f"{self.samples.dtype} {self.header.rate} {self.header.channels}\n"
        return self.file_sha256 or hashlib.sha256(layout.encode() + self.samples.tobytes()).hexdigest()


AudioSource = Path | bytes
"""Path of a file, or its bytes."""


def read_header(source: AudioSource, segment: Segment | None = None, *, any_length: bool = False) -> Header:
    """Read the header of a file, or of a segment; raises `AudioProblem` if it cannot be used.

    any_length: accept what decodes to more than `LARGEST_DECODED_BYTES`.
    """
    if (len(source) if isinstance(source, bytes) else os.path.getsize(source)) == 0:
        raise AudioProblem("empty audio", "a file of 0 bytes")
    with _opened(source) as file:
        return _checked_header(file, source, segment, any_length)


def read_recording(source: AudioSource, segment: Segment | None = None, channel: int | None = None) -> Recording:
    """Decode a file, or seek to a segment and decode it; raises `AudioProblem`. channel: that of `Recording`."""
    with _opened(source) as file:
        header = _checked_header(file, source, segment)
        lead_in = 0 if file.subtype.startswith(_SEEKABLE) else round(_LEAD_IN_SECONDS * header.rate)
        start = max(0, header.first - lead_in)
        if start:
            file.seek(start)
        dtype = "int16" if file.subtype == "PCM_16" else "float32"
        samples = file.read(header.first - start + header.samples, dtype=dtype, always_2d=True)[header.first - start :]
    if len(samples) != header.samples:
        raise AudioProblem("unreadable audio", f"{len(samples)} samples decoded, the header says {header.samples}")
    return Recording(header=header, samples=samples, channel=channel)


def read_parts(source: AudioSource, seconds: float) -> Iterator[Recording]:
    """Decode a file of any length in order, so many seconds at a time; raises `AudioProblem`."""
    with _opened(source) as file:
        header, decoded = _checked_header(file, source, None, any_length=True), 0
        file.seekable = lambda: False  # else soundfile seeks after each read, and libmpg123 prints errors
        while len(samples := file.read(math.ceil(seconds * header.rate), dtype="float32", always_2d=True)):
            decoded += len(samples)
            yield Recording(header=header, samples=samples)
    if decoded != header.samples:
        raise AudioProblem("unreadable audio", f"{decoded} samples decoded, the header says {header.samples}")


def source_rate(notes: str, rate: int) -> int:
    """Return the rate in Hz of a file from its `Header.notes(rate)`."""
    match = _RESAMPLED.search(notes)
    return int(match[1]) if match else rate


@contextmanager
def _opened(source: AudioSource) -> Iterator[soundfile.SoundFile]:
    """Open a file; errors of libsndfile and the system become `AudioProblem`."""
    try:
        with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as given:
            whole = with_length(given) or source
        with soundfile.SoundFile(io.BytesIO(whole) if isinstance(whole, bytes) else str(whole)) as file:
            yield file
    except soundfile.LibsndfileError as error:  # its message has the path, which must not get into the index
        found = POINTER if is_pointer(source) else str(error.error_string)[:200]
        raise AudioProblem("unreadable audio", found) from None
    except (soundfile.SoundFileError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise AudioProblem("unreadable audio", reason or "not readable as audio") from None


def _checked_header(
    file: soundfile.SoundFile, source: AudioSource, segment: Segment | None, any_length: bool = False
) -> Header:
    header = Header(samples=file.frames, rate=file.samplerate, channels=file.channels)
    if not _LOWEST_RATE <= header.rate <= _HIGHEST_RATE:
        raise AudioProblem("unreadable audio", f"a rate of {header.rate} Hz")
    if segment is not None:
        header = _segment_header(header, segment)
    else:
        _refuse_truncated(file.extra_info, source)
    if header.samples <= 0:
        raise AudioProblem("empty audio", "no samples")
    if header.samples * header.channels * 4 > LARGEST_DECODED_BYTES and not any_length:
        raise AudioProblem("too long audio", f"{header.samples / header.rate:.0f} s of {header.channels} channels")
    return header


def _refuse_truncated(log: str, source: AudioSource) -> None:
    """Raise `AudioProblem` if libsndfile's log says that a file holds less than its header promises."""
    for promised, actual in _SIZE_MISMATCH.findall(log):
        if int(actual) + 1 < int(promised) < _STREAMED_BYTES:  # a byte of padding may be missing
            raise AudioProblem("unreadable audio", f"cut off: {actual} bytes, the header says {promised}")
    if _UNREAD_OGG in log and not _ends_whole(source if isinstance(source, bytes) else Path(source).read_bytes()):
        raise AudioProblem("unreadable audio", "cut off, or several streams in one file")


def _ends_whole(ogg: bytes) -> bool:
    """Whether the last page of an Ogg file is whole and ends its only stream: a tag or zeros may follow (RFC 3533)."""
    last = ogg.rfind(b"OggS")
    page = ogg[last : last + 27]
    if len(page) < 27 or not page[5] & 4 or page[14:18] != ogg[14:18]:
        return False
    lengths = ogg[last + 27 : last + 27 + page[26]]
    return len(lengths) == page[26] and last + 27 + page[26] + sum(lengths) <= len(ogg)


def channels_to_mix(parts: Iterable[np.ndarray], channel: int | None = None) -> np.ndarray:
    """Return int64[K], the non-silent channels of a recording, or the loudest alone if their mean cancels out.

    parts: float32[S, channels] each. A constant offset counts as silence. channel: the one to take if there are
    several, or None; raises `AudioProblem` if there are fewer.
    """
    if channel is not None:
        several = next(iter(parts)).shape[1]
        if channel >= several > 1:
            raise AudioProblem("unreadable audio", f"{several} channels, the one to take is {channel} (0: the left)")
        return np.array([channel if several > 1 else 0])
    count, origin, total, products = 0, np.zeros(1), np.zeros(1), np.zeros(1)
    for part in parts:
        origin = origin if count else part[0].astype(np.float64)  # so that a constant is exactly 0
        moved = part - origin
        count, total, products = count + len(part), total + moved.sum(axis=0), products + moved.T @ moved
    covariance = products / count - np.outer(total, total) / count**2
    power = covariance.diagonal()
    if not np.isfinite(power).all():
        return np.arange(len(power))
    audible = np.flatnonzero(power >= _SILENT_SHARE * power.max())
    cancelled = covariance[np.ix_(audible, audible)].mean() < _CANCELLED_SHARE * power.max()  # the power of their mean
    loudest = np.flatnonzero(power >= (1 - 1e-9) * power.max())[:1]  # the first of equal ones, however they are rounded
    return loudest if cancelled else audible


def _segment_header(header: Header, segment: Segment) -> Header:
    """Return the header of a segment, its ends rounded to the nearest samples."""
    first = round(segment.start * header.rate)
    end = header.samples if isinf(segment.duration) else round((segment.start + segment.duration) * header.rate)
    beyond = (end - header.samples) / header.rate
    if first == 0 and abs(beyond) <= _ROUNDING_SECONDS:
        return header
    if not 0 <= first < header.samples or beyond > _BEYOND_SECONDS:
        interval = f"{segment.duration:g} s starting at {segment.start:g} s, of {header.samples / header.rate:g} s"
        raise AudioProblem("unreadable audio", f"a segment of {interval}")
    return replace(header, first=first, samples=min(end, header.samples) - first)


def _resample(mono: np.ndarray, header: Header, rate: int) -> np.ndarray:
    import soxr  # slow import

    out = soxr.resample(mono, header.rate, rate, quality="HQ")
    # soxr may return a sample more or less than the exact ratio; the length must follow from the header.
    missing = header.samples_at(rate) - len(out)
    return np.pad(out, (0, missing)) if missing > 0 else out[: len(out) + missing]
