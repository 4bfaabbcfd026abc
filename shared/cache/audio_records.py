"""Records that name audio instead of holding a mel: the wavs that they may name, and their mels without TensorFlow."""

import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

from xtts.shared.audio.decode import AudioProblem, read_recording
from xtts.shared.audio.mel import log_mel
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.records import CorruptRecord, Record

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


def with_mel(record: Record, spec: CacheSpec, frames: int | None = None) -> Record:
    """The record with the mel of the audio that it names, as a cache with mels holds it; one with a mel as it is.

    frames: T to pad to, none without. Raises `CorruptRecord` where the audio is not what was indexed.
    """
    if record.audio is None:
        return record
    path, profile = spec.audio_file(record.audio.corpus, record.audio.source), spec.mel_profile
    try:
        recording = read_recording(path)
    except (OSError, AudioProblem) as error:
        raise CorruptRecord(f"{path} cannot be read ({error})") from None
    found = (recording.header.rate, len(recording.samples))
    if found != (profile.sample_rate, record.audio.samples):
        raise CorruptRecord(f"{path} has {found[1]} samples at {found[0]} Hz, not the {record.audio.samples} indexed")
    mel = log_mel(recording.mono, profile)[: record.mel_length].astype(spec.mel_dtype)
    padded = np.full((max(frames or 0, len(mel)), profile.mel_channels), profile.silence, mel.dtype)
    padded[: len(mel)] = mel
    return replace(record, mel=padded)
