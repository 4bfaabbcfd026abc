"""The recordings to transcribe: finding, checking and decoding them."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from xtts.precompute.archives.tar_files import PACKED, SUFFIX
from xtts.precompute.corpus.clip_fields import encodable
from xtts.precompute.corpus.corpus_files import SUFFIXES, files_below
from xtts.shared.audio.decode import AudioProblem, channels_to_mix, read_header, read_parts
from xtts.shared.audio.other_formats import OTHER_SUFFIXES, decode_by_ffmpeg
from xtts.shared.audio.signal_quality import channel_power, other_channel_share
from xtts.shared.errors import LockstepError, refuse_pointer

_READABLE = f"sound: {', '.join(SUFFIXES + OTHER_SUFFIXES)}"
_PART_SECONDS = 60


def find_recordings(
    audio: Sequence[Path], out: Path, say: Callable[[str], None]
) -> tuple[list[Path], dict[Path, LockstepError]]:
    """Return the readable files of `audio` and those below its folders, and why others cannot be read.

    In folders, files with an audio suffix that are not in `out` are recordings; `say` receives a line that counts the
    rest. Raises a `LockstepError` for a folder without recordings, and if none can be read.
    """
    paths, broken = list[Path](), dict[Path, LockstepError]()
    for path in audio:
        below = [path / name for name in files_below(path)] if path.is_dir() else [path]
        below = [file for file in below if not file.resolve().is_relative_to(out.resolve())]
        kinds = (*SUFFIXES, *OTHER_SUFFIXES, path.suffix.lower()) if below == [path] else SUFFIXES + OTHER_SUFFIXES
        sounds = [file for file in below if file.suffix.lower() in kinds]
        others = Counter(
            file.suffix.lower() or "without a suffix" for file in below if file.suffix.lower() not in kinds
        )
        counts = ", ".join(f"{count:,} {suffix}" for suffix, count in others.most_common())
        packed = [file for file in below if file.name.lower().endswith((*PACKED, SUFFIX))]
        fix = f"unpack {packed[0].name} and the like" if packed else ""
        if not sounds:
            found = f"no recordings{counts and f', but {counts}'}"
            raise LockstepError(str(path), found=found, expected=_READABLE, fix=fix)
        if others:
            say(f"{path}: files that are no recordings: {counts}{fix and f'; {fix}'}")
        paths += sounds
    for path in paths:
        try:
            if not encodable(str(path)):
                raise LockstepError(ascii(str(path)), found="a name that is not UTF-8", fix="rename it")
            refuse_pointer(path)
            with _errors_explained(path):
                if path.suffix.lower() in SUFFIXES or not os.path.getsize(path):
                    read_header(path, any_length=True)
                else:
                    decode_by_ffmpeg(path, str(path), header_only=True)
        except LockstepError as error:
            broken[path] = error
    if broken.keys() >= {*paths}:
        raise next(iter(broken.values()))
    return [path for path in paths if path not in broken], broken


def decode_recording(path: Path, channel: int | None = None) -> tuple[np.ndarray, int, float]:
    """Decode a recording of any length: (int16[S], mixed down, rate in Hz, `SignalQuality.other_channel_share`).

    channel: the one to take if there are several, or None. Raises a `LockstepError` if it is damaged.
    """
    with _errors_explained(path):
        if path.suffix.lower() in SUFFIXES:
            rate, whole = read_header(path, any_length=True).rate, None
        else:
            whole, rate = decode_by_ffmpeg(path, str(path), in_stereo=True)

        def parts() -> Iterator[np.ndarray]:
            return iter([whole]) if whole is not None else (part.samples for part in read_parts(path, _PART_SECONDS))

        channels = channels_to_mix(parts(), channel)
        mono, power = list[np.ndarray](), list[np.ndarray]()
        for part in parts():
            mixed = part[:, channels]
            mono.append(_to_int16(mixed.mean(axis=1)))
            power.append(channel_power(mixed, rate) if len(channels) > 1 else np.zeros([1, 1]))
        return np.concatenate(mono), rate, other_channel_share(np.concatenate(power, axis=1))


def _to_int16(samples: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(np.rint(samples * 32768), -32768, 32767), np.int16)


@contextmanager
def _errors_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (AudioProblem, OSError) as error:
        found = str(error) if isinstance(error, AudioProblem) else f"cannot be read ({error.strerror})"
        raise LockstepError(str(path), found=found, expected=_READABLE) from None
