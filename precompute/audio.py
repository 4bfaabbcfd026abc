"""Audio files to mono float32 samples at the rate of the mel profile."""

import io
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

LARGEST_DECODED_BYTES = 2**28
"""A file that decodes to more is refused before it is decoded: an hour of mono, no clip of speech."""

_LOWEST_RATE, _HIGHEST_RATE = 1_000, 768_000
"""Hz; beyond them a header is broken, and resampling would multiply the memory."""


class AudioProblem(Exception):
    """Why a clip's audio cannot be used: a reason of the ledger, and details."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a file says about itself before it is decoded."""

    frames: int
    """Samples per channel."""
    rate: int
    channels: int

    def samples_at(self, rate: int) -> int:
        """S after resampling to `rate`, rounded to the nearest."""
        return (2 * self.frames * rate + self.rate) // (2 * self.rate)

    def notes(self, rate: int) -> str:
        """What decoding will do beyond reading, for the ledger."""
        parts = []
        if self.channels > 1:
            parts.append(f"mixed down from {self.channels} channels")
        if self.rate != rate:
            parts.append(f"resampled from {self.rate} Hz")
        return "; ".join(parts)


def read_header(file: str | Path | io.BytesIO) -> Header:
    """Read length, rate and channels; raises `AudioProblem` for what cannot be used."""
    if isinstance(file, str | Path) and os.path.getsize(file) == 0:
        raise AudioProblem("empty audio", "a file of 0 bytes")
    try:
        info = soundfile.info(file)
    except (soundfile.SoundFileError, OSError) as error:
        raise AudioProblem("unreadable audio", _first_line(error)) from None
    header = Header(frames=info.frames, rate=info.samplerate, channels=info.channels)
    if not _LOWEST_RATE <= header.rate <= _HIGHEST_RATE:
        raise AudioProblem("unreadable audio", f"a rate of {header.rate} Hz")
    if header.frames <= 0:
        raise AudioProblem("empty audio", "no samples")
    if header.frames * header.channels * 4 > LARGEST_DECODED_BYTES:
        raise AudioProblem("too long audio", f"{header.frames / header.rate:.0f} s of {header.channels} channels")
    return header


def decode(data: bytes, *, rate: int) -> np.ndarray:
    """Decode a whole file to float32[S]: channels averaged, then resampled to `rate`."""
    header = read_header(io.BytesIO(data))
    try:
        samples, _ = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError) as error:
        raise AudioProblem("unreadable audio", _first_line(error)) from None
    mono = samples[:, 0] if header.channels == 1 else samples.mean(axis=1, dtype=np.float32)
    if len(mono) != header.frames:
        raise AudioProblem("unreadable audio", f"{len(mono)} samples decoded, the header says {header.frames}")
    return np.ascontiguousarray(mono) if header.rate == rate else _resample(mono, header, rate)


def _resample(mono: np.ndarray, header: Header, rate: int) -> np.ndarray:
    out = soxr.resample(mono, header.rate, rate, quality="HQ")
    # soxr may return one sample more or less than the exact ratio; the header alone has to give the length.
    missing = header.samples_at(rate) - len(out)
    return np.pad(out, (0, missing)) if missing > 0 else out[: len(out) + missing]


def _first_line(error: Exception) -> str:
    return str(error).replace("<_io.BytesIO object", "<file").splitlines()[0][:200]
