"""Parity with a plain float64 implementation of the profile table, written independently of shared/audio/mel.py."""

import librosa.util.utils  # here, and in no test: in a fresh environment numba compiles it for ten seconds
import numpy as np
import pytest

from xtts.shared.audio.mel import clip_mel, log_mel
from xtts.shared.audio.mel_profiles import EDGE_FRAMES, MEL_PROFILES, MelProfile

profiles = pytest.mark.parametrize("profile", MEL_PROFILES.values(), ids=MEL_PROFILES)

TABLE = {
    # name: rate, n_fft, hop, M, fmin, fmax, padding, centered, htk scale, norm, floor under the root, clamp
    "hifigan": (22_050, 1024, 256, 80, 0, 8_000, 384, False, False, "slaney", 1e-9, 1e-5),
    "tacotron2": (22_050, 1024, 256, 80, 0, 8_000, 512, True, False, "slaney", 0.0, 1e-5),
    "bigvgan24": (24_000, 1024, 256, 100, 0, 12_000, 384, False, False, "slaney", 1e-9, 1e-5),
    "vocos24": (24_000, 1024, 256, 100, 0, 12_000, 512, True, True, None, 0.0, 1e-7),
}


def plain_log_mel(samples: np.ndarray, name: str) -> np.ndarray:
    """One frame at a time, float64, a direct reading of the table in the design."""
    rate, n_fft, hop, channels, low, high, pad, centered, htk, norm, floor, clamp = TABLE[name]
    bank = librosa.filters.mel(
        sr=rate, n_fft=n_fft, n_mels=channels, fmin=low, fmax=high, htk=htk, norm=norm, dtype=np.float64
    )
    padded = np.pad(samples.astype(np.float64), pad, mode="reflect")
    window = 0.5 * (1 - np.cos(2 * np.pi * np.arange(n_fft) / n_fft))
    rows = []
    for frame in range(len(samples) // hop + (1 if centered else 0)):
        spectrum = np.fft.rfft(padded[frame * hop : frame * hop + n_fft] * window)
        magnitude = np.sqrt(spectrum.real**2 + spectrum.imag**2 + floor)
        rows.append(np.log(np.maximum(bank @ magnitude, clamp)))
    return np.array(rows)


@profiles
@pytest.mark.parametrize("loudness", [0.0, 1e-4, 0.3])
def test_a_tone_in_noise_matches_the_plain_implementation(profile: MelProfile, loudness: float):
    """In the first half; down to the shortest clip that has frames, and to digital silence."""
    shortest = profile.hop_samples * (profile.shortest_frames - 2 * EDGE_FRAMES - profile.centered)
    assert profile.clip_frames(shortest) == profile.shortest_frames
    for size in (30_000, 800, shortest):
        tone = np.sin(2 * np.pi * 220 * np.arange(size) / profile.sample_rate) * (np.arange(size) < size / 2)
        noise = np.random.default_rng(7).standard_normal(size)
        samples = (loudness * (2 * tone + noise)).astype(np.float32)
        mel = log_mel(samples, profile)
        assert mel.dtype == np.float32
        assert mel.shape == (profile.frames(len(samples)), profile.mel_channels)
        np.testing.assert_allclose(mel, plain_log_mel(samples, profile.name), atol=1e-3, rtol=0)


@profiles
def test_a_clip_begins_and_ends_in_silence(profile: MelProfile):
    samples = np.random.default_rng(7).standard_normal(30_000).astype(np.float32)
    clip, mel = clip_mel(samples, profile), log_mel(samples, profile)
    assert len(clip) == profile.clip_frames(len(samples))
    np.testing.assert_array_equal(clip[EDGE_FRAMES:-EDGE_FRAMES], mel)
    assert mel.min() > profile.silence
    for edge in (clip[:EDGE_FRAMES], clip[-EDGE_FRAMES:]):
        np.testing.assert_array_equal(edge, np.float32(profile.silence))


def test_quiet_channels_beside_a_loud_one_are_exact():
    """HTK's filters are not normed: a quiet one may have a single bin."""
    time = np.arange(12_000) / 24_000
    for seed, level in ((1, 6e-5), (2, 3e-5), (3, 4e-5)):
        noisy = 0.95 * np.sin(2 * np.pi * 300 * time) + level * np.random.default_rng(seed).standard_normal(len(time))
        samples = noisy.astype(np.float32)
        mel = log_mel(samples, MEL_PROFILES["vocos24"])
        np.testing.assert_allclose(mel, plain_log_mel(samples, "vocos24"), atol=6e-4, rtol=0)
