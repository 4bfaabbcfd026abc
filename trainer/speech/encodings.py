"""Encoding of samples as a sound file: mp3, opus, wav, flac or pcm, at once or piece by piece."""

import io
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import soxr

if TYPE_CHECKING:
    import soundfile

MEDIA_TYPES = {"mp3": "audio/mpeg", "opus": "audio/ogg", "wav": "audio/wav", "flac": "audio/flac", "pcm": "audio/pcm"}
_OTHER_NAMES = {"ogg": "opus", "oga": "opus", "mpeg": "mp3", "wave": "wav", "x-wav": "wav", "x-flac": "flac"}
_RATES = {"opus": 48_000, "pcm": 24_000}
"""Sample rates of formats that have one: opus knows few others, and clients of OpenAI's API play pcm as its 24 kHz."""
_UNKNOWN_LENGTH = b"\xff" * 4
"""Length in the header of a wav that is streamed."""


def format_name(name: str) -> str:
    """Return the one of `MEDIA_TYPES` that a name, a suffix or a media type means, others unchanged."""
    plain = name.lower().removeprefix("audio/").removeprefix(".")
    return plain if plain in MEDIA_TYPES else _OTHER_NAMES.get(plain, name)


class _Buffer(io.BytesIO):
    """Bytes that stay open: the collector of cycles would close them before the file that is written to them."""

    def close(self) -> None:
        """Do nothing."""


class _Disk:
    """A file for libsndfile, whose calls must raise nothing: an error is kept until `check` raises it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._error = file, OSError()

    def write(self, data: bytes) -> int:
        """Write all of the data, or keep the error; a disk that is nearly full takes a part first."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left):]
        except OSError as error:
            self._error = error
        return len(data)

    def check(self) -> None:
        """Raise the error of an earlier `write`."""
        if self._error.errno:
            raise self._error

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the other methods of a file
        return getattr(self._file, name)


class FileEncoder:
    """Encodes pieces of samples, float32[S] in -1 to 1, into a file that is whole after each of them.

    name: one of `MEDIA_TYPES` but pcm; file: opened for writing and reading, without a buffer.
    """

    def __init__(self, name: str, sample_rate: int, file: BinaryIO) -> None:
        self._disk, self._is_wav = _Disk(file), name == "wav"
        self._pieces = _Pieces(name, sample_rate, self._disk)

    def add(self, samples: np.ndarray, *, last: bool) -> None:
        """Encode samples; `last` ends the file. `OSError` if they cannot be written."""
        self._pieces.add(samples, last=last)
        self._disk.check()
        if self._is_wav and not last:  # libsndfile writes the lengths when it closes the file
            end = self._disk.tell()
            for place, length in ((4, end - 8), (40, end - 44)):
                self._disk.seek(place)
                self._disk.write(struct.pack("<I", length))
            self._disk.seek(end)

    def close(self) -> None:
        """End the file after the last piece so far."""
        self._pieces.close()


class Encoder:
    """Encodes pieces of samples, float32[S] in -1 to 1, as the bytes of one file, with libsndfile.

    name: one of `MEDIA_TYPES`, or raw: pcm at the samples' own rate.

    streams: whether bytes are returned as soon as possible, so that the header, which libsndfile corrects at the end,
    has no length. Otherwise all bytes come at the end, with the length in the header.
    """

    def __init__(self, name: str, sample_rate: int, *, streams: bool) -> None:
        self._unfinished_wav = streams and name == "wav"
        self._streams = streams
        self._data, self._sent = _Buffer(), 0
        self._pieces = _Pieces(name, sample_rate, self._data)
        self.sample_rate = self._pieces.sample_rate

    def add(self, samples: np.ndarray, *, last: bool) -> bytes:
        """Encode samples and return the bytes that can be sent now; `last` ends the file."""
        self._pieces.add(samples, last=last)
        if not (last or self._streams):
            return b""
        data = self._data.getvalue()[self._sent :]
        if self._unfinished_wav and not self._sent:
            data = data[:4] + _UNKNOWN_LENGTH + data[8:40] + _UNKNOWN_LENGTH + data[44:]
        self._sent += len(data)
        return data


class _Pieces:
    """Pieces of samples, written to a file at the rate of its format."""

    def __init__(self, name: str, sample_rate: int, file: io.BytesIO | _Disk) -> None:
        self._resample: Callable[[np.ndarray, bool], np.ndarray] | None = None
        self.sample_rate = _RATES.get(name, sample_rate)
        if self.sample_rate != sample_rate:
            self._resample = soxr.ResampleStream(sample_rate, self.sample_rate, 1).resample_chunk
        self._file = _sound_file(file, name, self.sample_rate)

    def add(self, samples: np.ndarray, *, last: bool) -> None:
        """Write samples, float32[S] in -1 to 1; `last` ends the file."""
        import soundfile

        if self._resample:
            samples = self._resample(samples.astype(np.float32), last)
        little_endian = io.BytesIO()  # as in a wav
        soundfile.write(little_endian, samples, 1, format="RAW", subtype="PCM_16", endian="LITTLE")
        self._file.write(np.frombuffer(little_endian.getvalue(), "<i2"))
        if last:
            self.close()

    def close(self) -> None:
        """End the file."""
        self._file.close()


def _sound_file(data: io.BytesIO | _Disk, name: str, sample_rate: int) -> "soundfile.SoundFile":
    """Open a sound file of 16 bits; mp3 at a constant bitrate, so that players can tell the length of a stream."""
    import soundfile

    kind: dict[str, Any] = {"format": name.upper()}
    if name == "mp3":
        # libsndfile respects the mode only together with a level; this one is 80 kbit/s at 22,050 Hz.
        kind |= {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
    elif name == "opus":
        kind = {"format": "OGG", "subtype": "OPUS"}
    elif name in ("pcm", "raw"):
        kind = {"format": "RAW", "subtype": "PCM_16", "endian": "LITTLE"}
    return soundfile.SoundFile(data, "w", samplerate=sample_rate, channels=1, **kind)
