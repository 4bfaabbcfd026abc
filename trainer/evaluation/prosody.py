"""Melody and pauses of speech against those of its recording."""

from typing import NamedTuple

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile

LOWEST_HZ, HIGHEST_HZ = 60.0, 500.0
"""Range of speaking voices."""
PAUSE_SECONDS = 0.1
"""Silence inside a sentence that lasts as long is a pause."""
SILENCE_DB = 30.0
"""Below the loud frames of the clip: silence, as at the edges of a recording (shared/audio/signal_quality.py)."""


def pitch_track(samples: np.ndarray, profile: MelProfile, frames: int) -> np.ndarray:
    """F0 in Hz of each mel frame, 0 where unvoiced: float32[S] -> float32[T], T = frames.

    Probabilistic YIN (Mauch and Dixon, ICASSP 2014) as librosa has it, in steps of 0.2 semitones. Samples that are no
    numbers count as silence.
    """
    import librosa  # a second

    hertz, voiced, _ = librosa.pyin(
        np.nan_to_num(samples), fmin=LOWEST_HZ, fmax=HIGHEST_HZ, sr=profile.sample_rate, frame_length=profile.fft_size,
        hop_length=profile.hop_samples, resolution=0.2,
    )  # fmt: skip
    track = np.where(voiced, hertz, 0.0).astype(np.float32)[:frames]
    return np.pad(track, (0, frames - len(track)))


class PitchErrors(NamedTuple):
    """Differences of F0 along a warping path."""

    log_f0: float
    """Root mean square of the difference of ln F0, over the pairs of frames that are voiced in both; 0 without any."""
    voicing: float
    """Share of the pairs of frames that are voiced in one and unvoiced in the other."""


def pitch_errors(track: np.ndarray, recorded: np.ndarray, path: np.ndarray) -> PitchErrors:
    """track: float32[T], recorded: float32[T'], Hz, 0 where unvoiced, path: int[P, 2]."""
    one, two = track[path[:, 0]], recorded[path[:, 1]]
    both = (one > 0) & (two > 0)
    apart = np.log(one[both] / two[both])
    return PitchErrors(float(np.sqrt(np.mean(apart**2))) if both.any() else 0.0, float(np.mean((one > 0) != (two > 0))))


def pause_seconds(mel: np.ndarray, profile: MelProfile) -> float:
    """Seconds of all pauses inside a clip: mel [T, M], natural-log magnitude."""
    level = 10.0 / np.log(10.0) * np.log(np.exp(2.0 * mel.astype(np.float64)).sum(axis=1))
    quiet = level < np.percentile(level, 95) - SILENCE_DB
    spoken = np.flatnonzero(~quiet)
    gaps = np.diff(spoken) - 1  # frames between one that is spoken and the next
    frame = profile.hop_samples / profile.sample_rate
    return float(gaps[gaps * frame >= PAUSE_SECONDS].sum() * frame)
