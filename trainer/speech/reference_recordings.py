"""The recordings that a voice imitates, read from sound files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soxr

from xtts.shared.audio.decode import AudioProblem, read_header, read_recording
from xtts.shared.audio.other_formats import OTHER_SUFFIXES, decode_by_ffmpeg
from xtts.shared.audio.speaker_encoder import RATE
from xtts.shared.audio.trim_and_loudness import refuse_silence
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.onnx_file import read_file
from xtts.trainer.speech.voice_source import Source

_OPTION = "--speaker-wav"
_SHORTEST_SECONDS = 2.0
"""Shortest reference: a word or two do not characterise a voice."""
_LONGEST_SECONDS = 120.0
"""Longest reference: its mel takes a megabyte a second, and a compressed file of 200 KB may last for hours."""
_SILENT_PEAK = 1e-3
"""Lowest peak of a recording with speech, -60 dB: below it there is hum and noise."""


def read_recordings(paths: Sequence[Path], source: Source) -> list[np.ndarray]:
    """Read the recordings to imitate, float32[S] each at `RATE`; none for a model that imitates none."""
    if not source.takes_recording:
        if paths and source.voice_from == "graph":
            raise LockstepError(_OPTION, found=f"the graph of {source.folder} has its voice inside")
        if paths:
            raise LockstepError(
                _OPTION, found=f"{source.folder} has the voices of its corpus and cannot imitate a recording",
                fix="train with --set model.voice_from=recording, or leave the option out",
            )
        return []
    if not paths:
        raise LockstepError(
            _OPTION, found="missing", expected=f"a recording of the voice that {source.folder} is to speak with",
            fix=f"add {_OPTION} REF.wav, {_SHORTEST_SECONDS:g} to 10 s of one speaker",
        )
    return [
        read_sound(read_file(path, _OPTION), f"{_OPTION} {path}", path.suffix.lower() in OTHER_SUFFIXES)
        for path in paths
    ]


def read_sound(data: bytes, location: str, by_ffmpeg: bool = False) -> np.ndarray:
    """Read a sound file to imitate: float32[S] at `RATE`.

    Raises:
        LockstepError: At `location`, if it is not two seconds of a voice.
    """
    try:
        if by_ffmpeg:
            samples = soxr.resample(*decode_by_ffmpeg(data, location, most_seconds=_LONGEST_SECONDS), RATE)
        else:
            header = read_header(data)
            _check_seconds(header.samples / header.rate, location)  # before it is decoded
            samples = read_recording(data).at(RATE)
        refuse_silence(samples)
    except AudioProblem as problem:
        raise LockstepError(location, found=str(problem), expected="a recording of one speaker") from None
    if not np.isfinite(samples).all():
        raise LockstepError(location, found="samples that are not finite numbers")
    _check_seconds(len(samples) / RATE, location)
    peak = float(np.abs(samples).max())
    if peak < _SILENT_PEAK:
        raise LockstepError(location, found=f"silence (a peak of {20 * np.log10(peak):.0f} dB)", expected="a voice")
    return np.asarray(samples)


def _check_seconds(seconds: float, location: str) -> None:
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        expected = f"{_SHORTEST_SECONDS:g} to {_LONGEST_SECONDS:g} s of one speaker"
        raise LockstepError(location, found=f"{seconds:,.2f} s of sound", expected=expected)
