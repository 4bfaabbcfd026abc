"""Audio files to mono float32 samples at the rate of the mel profile."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

LARGEST_DECODED_BYTES = 2**28
"""A file that decodes to more is refused before it is decoded: an hour of mono, no clip of speech."""

_LOWEST_RATE, _HIGHEST_RATE = 1_000, 768_000
"""Hz; beyond them a header is broken, and resampling would multiply the memory."""
_RESAMPLED = re.compile(r"resampled from (\d+) Hz")
"""As `Header.notes` says it; the ledger keeps it, caches of earlier versions included."""


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


def read_header(path: Path) -> Header:
    """Read length, rate and channels; raises `AudioProblem` for what cannot be used."""
    if os.path.getsize(path) == 0:
        raise AudioProblem("empty audio", "a file of 0 bytes")
    with _opened(str(path)) as file:
        return _check(file)


def source_rate(notes: str, rate: int) -> int:
    """Hz of a file whose `Header.notes(rate)` these are."""
    found = _RESAMPLED.search(notes)
    return int(found[1]) if found else rate


def decode(data: bytes, *, rate: int) -> np.ndarray:
    """Decode a whole file to float32[S]: channels averaged, then resampled to `rate`."""
    mono, header = decode_mono(data)
    return at_rate(mono, header, rate)


def decode_mono(data: bytes) -> tuple[np.ndarray, Header]:
    """Decode a whole file to float32[S] at its own rate, channels averaged."""
    with _opened(io.BytesIO(data)) as file:
        header = _check(file)
        samples = _read(file)
    mono = samples[:, 0] if header.channels == 1 else samples.mean(axis=1, dtype=np.float32)
    if len(mono) != header.frames:
        raise AudioProblem("unreadable audio", f"{len(mono)} samples decoded, the header says {header.frames}")
    return np.ascontiguousarray(mono), header


def at_rate(mono: np.ndarray, header: Header, rate: int) -> np.ndarray:
    """The samples of `decode_mono` resampled to `rate`; float32[S]."""
    return mono if header.rate == rate else _resample(mono, header, rate)


@contextmanager
def _opened(source: str | io.BytesIO) -> Iterator[Any]:
    try:
        with soundfile.SoundFile(source) as file:
            yield file
    except soundfile.LibsndfileError as error:  # its own text holds the path, which the ledger must not depend on
        raise AudioProblem("unreadable audio", str(error.error_string)[:200]) from None
    except (soundfile.SoundFileError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise AudioProblem("unreadable audio", reason or "not readable as audio") from None


def _check(file: Any) -> Header:  # noqa: ANN401 - soundfile ships no types
    header = Header(frames=file.frames, rate=file.samplerate, channels=file.channels)
    if not _LOWEST_RATE <= header.rate <= _HIGHEST_RATE:
        raise AudioProblem("unreadable audio", f"a rate of {header.rate} Hz")
    if header.frames <= 0:
        raise AudioProblem("empty audio", "no samples")
    if header.frames * header.channels * 4 > LARGEST_DECODED_BYTES:
        raise AudioProblem("too long audio", f"{header.frames / header.rate:.0f} s of {header.channels} channels")
    return header


def _read(file: Any) -> np.ndarray:  # noqa: ANN401
    """float32[S, channels]; 16-bit samples are scaled here, which gives libsndfile's floats in half its time."""
    if file.subtype == "PCM_16":
        whole: np.ndarray = file.read(dtype="int16", always_2d=True)
        return whole * np.float32(1 / 32768)
    samples: np.ndarray = file.read(dtype="float32", always_2d=True)
    return samples


def _resample(mono: np.ndarray, header: Header, rate: int) -> np.ndarray:
    import soxr  # only those who need it wait for it

    out = soxr.resample(mono, header.rate, rate, quality="HQ")
    # soxr may return one sample more or less than the exact ratio; the header alone has to give the length.
    missing = header.samples_at(rate) - len(out)
    return np.pad(out, (0, missing)) if missing > 0 else out[: len(out) + missing]
