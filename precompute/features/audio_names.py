"""The wav that a record names, and what is refused: audio that TensorFlow's decoder would not give as stage 1 does."""

import shlex
import struct
import wave
from pathlib import Path

from xtts.precompute.corpus.clip_audio import check_unchanged
from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.shared.audio.decode import AudioProblem, Header
from xtts.shared.cache.clip_index import IndexRow
from xtts.shared.cache.records import AudioName
from xtts.shared.errors import LockstepError

_ITEM_BYTES = 2
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
    if header.frames != samples:
        raise AudioProblem("unreadable audio", f"{header.frames} samples, {samples} were found before")
    return AudioName(source=row.clip.source, samples=samples, corpus=row.clip.corpus)


class OtherFormat(Exception):
    """Audio that has to be converted first; the message says what it is."""


def read_wav_header(path: Path) -> Header:
    """The header of a 16-bit PCM wav that tf.audio.decode_wav takes: the chunk `fmt ` comes first, and is a plain one.

    Raises `OtherFormat` for any other file, `AudioProblem` for a file that is cut off, `OSError`.
    """
    with path.open("rb") as file:
        begin = file.read(22)
        if begin[8:16] != b"WAVEfmt ":
            raise OtherFormat("no wav file" if begin[8:12] != b"WAVE" else "a wav whose format does not come first")
        size, tag = struct.unpack("<IH", begin[16:].ljust(6, b"\0"))
        if size not in _FORMAT_BYTES:
            raise OtherFormat("an extensible wav")
        file.seek(0)
        try:
            with wave.open(file) as wav:
                header = Header(frames=wav.getnframes(), rate=wav.getframerate(), channels=wav.getnchannels())
                item = wav.getsampwidth()
        except EOFError:
            raise AudioProblem("unreadable audio", "a wav without audio") from None
        except wave.Error as error:
            raise OtherFormat(f"wav of format {tag} ({error})") from None
        left = path.stat().st_size - file.tell()
    if item != _ITEM_BYTES:
        raise OtherFormat(f"{8 * item}-bit wav")
    wanted = header.frames * header.channels * item
    if wanted > left:
        raise AudioProblem("unreadable audio", f"{left} bytes of audio, the header says {wanted}")
    return header
