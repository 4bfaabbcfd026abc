"""Sound that libsndfile does not read, such as a phone's m4a: decoding by FFmpeg's libraries (extra `transcribe`)."""

import importlib
import io
import math
from typing import Any

import numpy as np

from xtts.shared.audio.decode import AudioProblem, AudioSource
from xtts.shared.errors import import_extra

OTHER_SUFFIXES = tuple(
    f".{name}" for name in "m4a mp4 aac wma webm amr 3gp 3g2 3ga m4b m4r mov mkv mka avi mp2 ac3 ape wv".split()
)


def decode_by_ffmpeg(
    source: AudioSource,
    location: str,
    *,
    header_only: bool = False,
    in_stereo: bool = False,
    most_seconds: float = math.inf,
) -> tuple[np.ndarray, int]:
    """Decode a sound: (float32[S], mixed down, its rate in Hz); without samples if header_only.

    in_stereo: return float32[S, channels], of one channel or two; most_seconds: refuse what is longer by its header.

    Raises:
        AudioProblem: FFmpeg decodes no sound from it.
        LockstepError: At `location`, if the extra is not installed.
    """
    av: Any = import_extra("av", "transcribe", location, "faster-whisper, which decodes it, is not installed")

    def opened() -> io.BytesIO | str:
        return io.BytesIO(source) if isinstance(source, bytes) else str(source)

    try:
        with av.open(opened()) as container:
            stream, seconds = container.streams.audio[0], (container.duration or 0) / av.time_base
            if seconds > most_seconds:
                raise AudioProblem("too long audio", f"{seconds:,.0f} s, at most {most_seconds:g} s")
            rate, split = int(stream.rate), in_stereo and stream.channels > 1
        decode = importlib.import_module("faster_whisper.audio").decode_audio
        if header_only:
            return np.zeros(0, np.float32), rate
        samples = decode(opened(), sampling_rate=rate, split_stereo=split)
        return (np.stack(samples if split else [samples], axis=1) if in_stereo else samples), rate
    except (av.error.FFmpegError, IndexError):
        raise AudioProblem("unreadable audio", "no sound that FFmpeg can decode") from None
