"""From samples to the bytes of a sound file: mp3, opus, wav, flac or pcm, at once or piece by piece."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import soxr

if TYPE_CHECKING:
    import soundfile

MEDIA_TYPES = {
    "mp3": "audio/mpeg", "opus": "audio/ogg", "wav": "audio/wav", "flac": "audio/flac", "pcm": "audio/pcm"
}  # fmt: skip
_OPUS_RATE = 48_000
"""Samples a second of every opus file: it knows few others, and none of our profiles' is among them."""
_UNKNOWN = b"\xff" * 4
"""The lengths in the header of a wav whose end is not known yet."""


def available_formats() -> list[str]:
    """The formats that this libsndfile writes; those before 1.1 have no mp3."""
    import soundfile

    written = {**soundfile.available_formats(), **soundfile.available_subtypes("OGG"), "PCM": ""}
    return [name for name in MEDIA_TYPES if name.upper() in written]


class Encoder:
    """Turns pieces of samples, float32[S] in -1 to 1, into the bytes of one file, as libsndfile writes it.

    streams: whether bytes are given away at once; what libsndfile would correct in the header at the end has then long
    been sent. Without it the file is whole, with its length in the header.
    """

    def __init__(self, name: str, sample_rate: int, *, streams: bool) -> None:
        self._unfinished_wav = streams and name == "wav"
        self._streams = streams
        self._data, self._sent = io.BytesIO(), 0
        self._resample: Callable[[np.ndarray, bool], np.ndarray] | None = None
        if name == "opus":
            self._resample = soxr.ResampleStream(sample_rate, _OPUS_RATE, 1, dtype="int16").resample_chunk
        self._file = _sound_file(self._data, name, _OPUS_RATE if self._resample else sample_rate)

    def add(self, samples: np.ndarray, *, last: bool) -> bytes:
        """The bytes that can be sent now; `last` ends the file."""
        numbers = _whole_numbers(samples)
        self._file.write(self._resample(numbers, last) if self._resample else numbers)
        if last:
            self._file.close()
        return self._new_bytes() if self._streams or last else b""

    def _new_bytes(self) -> bytes:
        data = self._data.getvalue()[self._sent :]
        if self._unfinished_wav and not self._sent:
            data = data[:4] + _UNKNOWN + data[8:40] + _UNKNOWN + data[44:]
        self._sent += len(data)
        return data


def _sound_file(data: io.BytesIO, name: str, sample_rate: int) -> "soundfile.SoundFile":
    """An open sound file of 16 bits; mp3 at a constant bitrate, so that players know the length of a stream."""
    import soundfile

    kind: dict[str, Any] = {"format": name.upper()}
    if name == "mp3":
        # libsndfile keeps to the mode only with a level as well; this one is 80 kbit/s at 22,050 Hz.
        kind |= {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
    elif name == "opus":
        kind = {"format": "OGG", "subtype": "OPUS"}
    elif name == "pcm":
        kind = {"format": "RAW", "subtype": "PCM_16", "endian": "LITTLE"}
    return soundfile.SoundFile(data, "w", samplerate=sample_rate, channels=1, **kind)


def _whole_numbers(samples: np.ndarray) -> np.ndarray:
    """The samples as a wav holds them: float32[S] in -1 to 1 -> int16[S], little-endian."""
    import soundfile

    data = io.BytesIO()
    soundfile.write(data, samples, 1, format="RAW", subtype="PCM_16", endian="LITTLE")
    return np.frombuffer(data.getvalue(), "<i2")
