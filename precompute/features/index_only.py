"""References to wav files in records; rejects audio that TensorFlow's decoder would read differently from stage 1."""

import shlex
import struct
import wave
from pathlib import Path

import pyarrow as pa

from xtts.precompute.corpus.clip_audio import check_unchanged
from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.shared.audio.decode import AudioProblem, Header
from xtts.shared.cache.clip_index import IndexRow, clips_of
from xtts.shared.cache.records import AudioName
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

_FORMAT_BYTES = (16, 18)
"""Sizes of the chunk `fmt ` that tf.audio.decode_wav accepts."""
WITH_MELS = "build a cache with mels: the same command without --index-only"


def audio_name(row: IndexRow, recipe: RecordRecipe) -> AudioName:
    """Return the reference to a clip's wav, of which only the header is read.

    Raises `AudioProblem` for a file whose sample count differs from the scan's, such as a truncated one, and for
    another format a `LockstepError` with the command to convert it.
    """
    path, rate = recipe.path(row.clip), recipe.profile.sample_rate
    samples = round(row.seconds * rate)
    try:
        header = read_wav_header(path)
        problem = f"{header.channels} channels at {header.rate} Hz"
    except OtherFormat as error:
        header, problem = None, str(error)
    except OSError as error:
        raise AudioProblem("unreadable audio", error.strerror or "") from None
    finally:
        check_unchanged(row, recipe)
    if header is None or (header.rate, header.channels) != (rate, 1):
        source, target = shlex.quote(path.name), shlex.quote(f"{path.stem}.new.wav")
        convert = f"ffmpeg -i {source} -ac 1 -ar {rate} -c:a pcm_s16le {target}"
        raise LockstepError(
            str(path), found=problem, expected=f"16-bit PCM wav of one channel at {rate} Hz, as --index-only needs",
            fix=f"convert all such files: {convert}; or {WITH_MELS}",
        )
    if header.samples != samples:
        raise AudioProblem("unreadable audio", f"the header says {header.samples} samples, the scan found {samples}")
    return AudioName(source=row.clip.source, samples=samples, corpus=row.clip.corpus)


class OtherFormat(Exception):
    """Audio in a format to be converted first, which the message names."""


def read_wav_header(path: Path) -> Header:
    """Return the header of a 16-bit PCM wav that tf.audio.decode_wav accepts: a plain chunk `fmt ` comes first.

    Raises `OtherFormat` for any other file, `OSError`.
    """
    with path.open("rb") as file:
        start = file.read(22)
        if start[8:16] != b"WAVEfmt ":
            raise OtherFormat("not a wav file" if start[8:12] != b"WAVE" else "a wav whose format does not come first")
        size, tag = struct.unpack("<IH", start[16:].ljust(6, b"\0"))
        if size not in _FORMAT_BYTES:
            raise OtherFormat("an extensible wav")
        file.seek(0)
        try:
            with wave.open(file) as wav:
                header = Header(samples=wav.getnframes(), rate=wav.getframerate(), channels=wav.getnchannels())
                bits = 8 * wav.getsampwidth()
        except (EOFError, wave.Error) as error:
            raise OtherFormat(f"wav of format {tag} ({error})") from None
    if bits != 16:
        raise OtherFormat(f"{bits}-bit wav")
    return header


def refuse_unsuited(clips: pa.Table, config: Config) -> None:
    """Raise `LockstepError` for what the trainer cannot do with audio: trim, scale, cut segments, open archives."""
    audio = config.audio
    for key in ("channel", "trim_silence_db", "loudness_lufs", "crop_frames"):
        value = getattr(audio, key)
        if value is not None:
            problem = f"{value} with --index-only, where the trainer reads the recordings as they are"
            raise LockstepError(f"audio.{key}", found=problem, expected="null", fix=WITH_MELS)
    if not config.shapes.pad_to_fixed_length:
        raise LockstepError("shapes.pad_to_fixed_length", found="false with --index-only", expected="true")
    segment = next((clip for clip in clips_of(clips) if clip.is_part), None)
    if segment is not None:
        kind = "a segment of a recording" if segment.start is not None else "a part of an archive"
        raise LockstepError(
            f"{segment.source} ({segment.id})", found=f"{kind}, which --index-only cannot read",
            expected="a wav file for each clip", fix=WITH_MELS,
        )
