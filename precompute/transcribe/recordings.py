"""The recordings to transcribe: finding, checking and decoding them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from xtts.precompute.corpus.clip_fields import encodable
from xtts.precompute.corpus.corpus_files import SUFFIXES, files_below
from xtts.shared.audio.decode import AudioProblem, channels_to_mix, read_header, read_parts
from xtts.shared.audio.other_formats import OTHER_SUFFIXES, decode_by_ffmpeg
from xtts.shared.errors import LockstepError

_READABLE = f"sound: {', '.join(SUFFIXES + OTHER_SUFFIXES)}"
_PART_SECONDS = 60


def find_recordings(audio: Sequence[Path], out: Path) -> list[Path]:
    """Return the files of `audio`, and those below its folders that have an audio suffix and are not in `out`.

    Raises a `LockstepError` for a folder without any, and for the first file that cannot be read.
    """
    paths = list[Path]()
    for path in audio:
        below = [path / name for name in files_below(path)] if path.is_dir() else [path]
        sounds = [file for file in below if file == path or file.suffix.lower() in SUFFIXES + OTHER_SUFFIXES]
        sounds = [file for file in sounds if not file.resolve().is_relative_to(out.resolve())]
        if not sounds:
            raise LockstepError(str(path), found="no recordings", expected=_READABLE)
        paths += sounds
    for path in paths:
        if not encodable(str(path)):
            raise LockstepError(ascii(str(path)), found="a name that is not UTF-8", fix="rename it")
        with _errors_explained(path):
            if path.suffix.lower() in OTHER_SUFFIXES:
                decode_by_ffmpeg(path, str(path), header_only=True)
            else:
                read_header(path, any_length=True)
    return paths


def decode_recording(path: Path) -> tuple[np.ndarray, int]:
    """Decode a recording of any length: int16[S], mixed down, and its rate in Hz; `LockstepError` if it is damaged."""
    with _errors_explained(path):
        if path.suffix.lower() in OTHER_SUFFIXES:
            samples, rate = decode_by_ffmpeg(path, str(path))
            return _to_int16(samples), rate
        channels = channels_to_mix(part.samples for part in read_parts(path, _PART_SECONDS))
        parts = (part.samples[:, channels].mean(axis=1) for part in read_parts(path, _PART_SECONDS))
        return np.concatenate(list(map(_to_int16, parts))), read_header(path, any_length=True).rate


def _to_int16(samples: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(np.rint(samples * 32768), -32768, 32767), np.int16)


@contextmanager
def _errors_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (AudioProblem, OSError) as error:
        found = str(error) if isinstance(error, AudioProblem) else f"cannot be read ({error.strerror})"
        raise LockstepError(str(path), found=found, expected=_READABLE) from None
