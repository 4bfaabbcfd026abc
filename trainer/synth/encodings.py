"""From samples to the bytes of a sound file: wav, flac, mp3, ogg or pcm, at once or piece by piece."""

import io
from typing import Any

import numpy as np

MEDIA_TYPES = {
    "mp3": "audio/mpeg", "wav": "audio/wav", "flac": "audio/flac", "ogg": "audio/ogg", "pcm": "audio/pcm",
}  # fmt: skip
_UNKNOWN = b"\xff" * 4
"""The lengths in the header of a wav whose end is not known yet."""
_BLOCK = 2**16
"""Samples that are written at once: libvorbis lays all of them on the stack, and five minutes end the process."""


def available_formats() -> list[str]:
    """The formats that this libsndfile writes; those before 1.1 have no mp3."""
    import soundfile

    return [name for name in MEDIA_TYPES if name == "pcm" or name.upper() in soundfile.available_formats()]


class Encoder:
    """Turns pieces of samples, float32[S] in -1 to 1, into the bytes of one file, as libsndfile writes it.

    streams: whether bytes are given away at once; what libsndfile would correct in the header at the end has then long
    been sent. Without it the file is whole, with its length in the header.
    """

    def __init__(self, name: str, sample_rate: int, *, streams: bool) -> None:
        self._unfinished_wav = streams and name == "wav"
        self._streams = streams or name == "pcm"
        self._data, self._sent = io.BytesIO(), 0
        self._file = _sound_file(self._data, name, sample_rate)

    def add(self, samples: np.ndarray) -> bytes:
        """The bytes that can be sent now."""
        whole = _whole_numbers(samples)
        for start in range(0, len(whole), _BLOCK):
            self._file.write(whole[start : start + _BLOCK])
        return self._new_bytes() if self._streams else b""

    def finish(self) -> bytes:
        """The bytes after the last piece."""
        self._file.close()
        return self._new_bytes()

    def _new_bytes(self) -> bytes:
        data = self._data.getvalue()[self._sent :]
        if self._unfinished_wav and not self._sent:
            data = data[:4] + _UNKNOWN + data[8:40] + _UNKNOWN + data[44:]
        self._sent += len(data)
        return data


def _sound_file(data: io.BytesIO, name: str, sample_rate: int) -> Any:  # noqa: ANN401 - soundfile has no types
    """An open sound file of 16 bits; mp3 at a constant bitrate, so that players know the length of a stream."""
    import soundfile

    kind: dict[str, Any] = {"format": name.upper()}
    if name == "mp3":
        # libsndfile keeps to the mode only with a level as well; this one is 80 kbit/s at 22,050 Hz.
        kind |= {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
    elif name == "pcm":
        kind = {"format": "RAW", "subtype": "PCM_16", "endian": "LITTLE"}
    return soundfile.SoundFile(data, "w", samplerate=sample_rate, channels=1, **kind)


def _whole_numbers(samples: np.ndarray) -> np.ndarray:
    """The samples as a wav holds them: float32[S] in -1 to 1 -> int16[S], little-endian."""
    import soundfile

    data = io.BytesIO()
    soundfile.write(data, samples, 1, format="RAW", subtype="PCM_16", endian="LITTLE")
    return np.frombuffer(data.getvalue(), "<i2")
