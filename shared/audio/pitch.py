"""Fundamental frequency of speech, frame by frame."""

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile

LOWEST_HZ, HIGHEST_HZ = 60.0, 500.0
"""Range of speaking voices."""


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
