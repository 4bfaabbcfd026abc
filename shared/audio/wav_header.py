"""Headers of 16-bit PCM wavs, read as strictly as tf.audio.decode_wav reads them."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from xtts.shared.audio.decode import AudioProblem

_PCM, _BITS = 1, 16
_FORMAT_BYTES = (16, 18)
"""Sizes of the chunk `fmt ` that tf.audio.decode_wav takes."""


class OtherFormat(Exception):
    """Audio that has to be converted first; the message says what it is."""


@dataclass(frozen=True, kw_only=True)
class WavHeader:
    """What a 16-bit PCM wav says about itself."""

    rate: int
    """Hz."""
    channels: int
    samples: int
    """Per channel."""


def read_wav_header(path: Path) -> WavHeader:
    """The header, read as strictly as tf.audio.decode_wav reads it.

    Raises `OtherFormat` for what is no 16-bit PCM wav, `AudioProblem` for a file that is cut off, `OSError`.
    """
    with path.open("rb") as file:
        begin = file.read(20)
        if len(begin) < 20 or begin[:4] != b"RIFF" or begin[8:16] != b"WAVEfmt ":
            raise OtherFormat("no wav file" if begin[8:12] != b"WAVE" else "a wav whose format does not come first")
        size = struct.unpack_from("<I", begin, 16)[0]
        about = file.read(min(size, 64))
        if size not in _FORMAT_BYTES or len(about) < size:
            raise OtherFormat("an extensible wav")
        tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", about)
        if (tag, bits) != (_PCM, _BITS):
            raise OtherFormat(f"{bits}-bit wav of format {tag}")
        data = _data_bytes(file)
    return WavHeader(rate=rate, channels=channels, samples=data // (2 * max(channels, 1)))


def _data_bytes(file: IO[bytes]) -> int:
    """Bytes of the chunk `data`; the file is behind the chunk `fmt `."""
    at = file.tell()
    end = file.seek(0, 2)
    file.seek(at)
    while len(chunk := file.read(8)) == 8:
        size = struct.unpack_from("<I", chunk, 4)[0]
        if chunk[:4] == b"data":
            left = end - file.tell()
            if size > left:
                raise AudioProblem("unreadable audio", f"{left} bytes of audio, the header says {size}")
            return int(size)
        file.seek(size, 1)
    raise AudioProblem("unreadable audio", "a wav without audio")
