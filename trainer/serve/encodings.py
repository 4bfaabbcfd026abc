"""From samples to the bytes of an answer: wav, flac, mp3 or pcm, at once or piece by piece."""

import io
import struct
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from xtts.trainer.synth.output_files import wav_bytes

MEDIA_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav", "flac": "audio/flac", "pcm": "audio/pcm"}
_UNKNOWN = 0xFFFFFFFF
"""The length in the header of a wav whose end is not known yet."""


def available_formats() -> list[str]:
    """The formats that this libsndfile writes; those before 1.1 have no mp3."""
    import soundfile

    return [name for name in MEDIA_TYPES if name == "pcm" or name.upper() in soundfile.available_formats()]


class Encoder(ABC):
    """Turns pieces of samples, float32[S] in -1 to 1, into the bytes of one file."""

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate

    @abstractmethod
    def add(self, samples: np.ndarray) -> bytes:
        """The bytes that can be sent now."""

    @abstractmethod
    def finish(self) -> bytes:
        """The bytes after the last piece."""


def make_encoder(name: str, sample_rate: int, *, streams: bool) -> Encoder:
    """An encoder for a format; without `streams` its file is whole, with its length in the header."""
    if not streams and name != "pcm":
        return _WholeFile(name, sample_rate)
    return _Pcm(sample_rate, headed=name == "wav") if name in ("pcm", "wav") else _Compressed(name, sample_rate)


class _WholeFile(Encoder):
    def __init__(self, name: str, sample_rate: int) -> None:
        super().__init__(sample_rate)
        self._name = name
        self._pieces: list[np.ndarray] = []

    def add(self, samples: np.ndarray) -> bytes:
        self._pieces.append(samples)
        return b""

    def finish(self) -> bytes:
        samples = np.concatenate(self._pieces)
        if self._name == "wav":
            return wav_bytes(samples, self.sample_rate)
        data = io.BytesIO()
        with _compressed_file(data, self._name, self.sample_rate) as file:
            file.write(_whole_numbers(samples))
        return data.getvalue()


class _Pcm(Encoder):
    """16-bit little-endian samples, as in a wav; `headed` puts a header of unknown length before them."""

    def __init__(self, sample_rate: int, *, headed: bool) -> None:
        super().__init__(sample_rate)
        self._header = b""
        if headed:
            form = (16, 1, 1, sample_rate, 2 * sample_rate, 2, 16)
            self._header = b"RIFF" + struct.pack("<I", _UNKNOWN) + b"WAVEfmt " + struct.pack("<IHHIIHH", *form)
            self._header += b"data" + struct.pack("<I", _UNKNOWN)

    def add(self, samples: np.ndarray) -> bytes:
        header, self._header = self._header, b""
        return header + _whole_numbers(samples).tobytes()

    def finish(self) -> bytes:
        return b""


class _Compressed(Encoder):
    """flac or mp3 as libsndfile writes it; what it would correct in the header at the end has long been sent."""

    def __init__(self, name: str, sample_rate: int) -> None:
        super().__init__(sample_rate)
        self._data, self._sent = io.BytesIO(), 0
        self._file = _compressed_file(self._data, name, sample_rate)

    def add(self, samples: np.ndarray) -> bytes:
        self._file.write(_whole_numbers(samples))
        return self._new_bytes()

    def finish(self) -> bytes:
        self._file.close()
        return self._new_bytes()

    def _new_bytes(self) -> bytes:
        data = self._data.getvalue()[self._sent :]
        self._sent += len(data)
        return data


def _compressed_file(data: io.BytesIO, name: str, sample_rate: int) -> Any:  # noqa: ANN401 - soundfile has no types
    """An open sound file; mp3 at a constant bitrate, so that players know the length of a stream."""
    import soundfile

    # libsndfile keeps to the mode only with a level as well; this one is 80 kbit/s at 22,050 Hz.
    constant = {"bitrate_mode": "CONSTANT", "compression_level": 0.5} if name == "mp3" else {}
    return soundfile.SoundFile(data, "w", samplerate=sample_rate, channels=1, format=name.upper(), **constant)


def _whole_numbers(samples: np.ndarray) -> np.ndarray:
    """The samples as a wav holds them: float32[S] in -1 to 1 -> int16[S], little-endian."""
    import soundfile

    data = io.BytesIO()
    soundfile.write(data, samples, 1, format="RAW", subtype="PCM_16", endian="LITTLE")
    return np.frombuffer(data.getvalue(), "<i2")
