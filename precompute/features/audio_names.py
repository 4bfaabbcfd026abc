"""The wav that a record names, and what is refused: audio that TensorFlow's decoder would not give as stage 1 does."""

import shlex
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from xtts.precompute.corpus.clip_audio import check_unchanged
from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import IndexRow
from xtts.shared.cache.records import AudioName
from xtts.shared.errors import LockstepError

_PCM, _BITS = 1, 16
_FORMAT_BYTES = (16, 18)
"""Sizes of the chunk `fmt ` that tf.audio.decode_wav takes."""
WITH_MELS = "build a cache with mels: the same command without --index-only"


def audio_name(row: IndexRow, extractor: FeatureExtractor) -> AudioName:
    """The name of a clip's wav, from its header alone.

    Raises `AudioProblem` for a broken file, `LockstepError` with the command that converts it for another format.
    """
    path, rate = extractor.path(row.clip), extractor.profile.sample_rate
    samples = round(row.seconds * rate)
    try:
        header = read_wav_header(path)
        found = f"{header.channels} channels at {header.rate} Hz"
    except OtherFormat as problem:
        header, found = None, str(problem)
    except OSError as error:
        raise AudioProblem("unreadable audio", error.strerror or "") from None
    finally:
        check_unchanged(row, extractor)
    if header is None or (header.rate, header.channels) != (rate, 1):
        source, target = shlex.quote(path.name), shlex.quote(f"{path.stem}.new.wav")
        convert = f"ffmpeg -i {source} -ac 1 -ar {rate} -c:a pcm_s16le {target}"
        raise LockstepError(
            str(path), found=found, expected=f"16-bit PCM wav of one channel at {rate} Hz, as --index-only needs",
            fix=f"convert it and all like it: {convert}; or {WITH_MELS}",
        )  # fmt: skip
    if header.samples != samples:
        raise AudioProblem("unreadable audio", f"{header.samples} samples, {samples} were found before")
    return AudioName(source=row.clip.source, samples=samples, corpus=row.clip.corpus)


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
