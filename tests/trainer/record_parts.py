"""Recordings as the page of `xtts-record` sends them, and prompts of about their length."""

import io
from pathlib import Path

import numpy as np
import soundfile
import soxr

RATE = 48_000
CLIPS = Path(__file__).parents[1] / "recordings" / "kathleen"
PROMPTS = [
    "I cannot follow you, she said.", "Let them go out and eat with my boys.", "Their supply of grub was gone.",
    "But Johannes could, and did.", "I graduated last of my class.",
]


def spoken(name, before=1.0, after=1.0):
    """A clip of tests/recordings between silences of a quiet room: float32[S] at 48 kHz."""
    samples, rate = soundfile.read(next(CLIPS.glob(f"{name}*.flac")), dtype="float32")
    silences = [np.random.default_rng(0).normal(0, 3e-4, round(seconds * RATE)) for seconds in (before, after)]
    return np.concatenate([silences[0], soxr.resample(samples, rate, RATE), silences[1]]).astype(np.float32)


def wav_of(samples, rate=RATE, **form):
    """Bytes of a wav, of 16 bits and one channel unless said."""
    soundfile.write(file := io.BytesIO(), samples, rate, format="WAV", **({"subtype": "PCM_16"} | form))
    return file.getvalue()
