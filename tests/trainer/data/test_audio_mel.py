"""TensorFlow's log-mel against stage 1's, in the ops of the input pipeline and compiled as in the step."""

import numpy as np
import pytest
import soundfile
import soxr
import tensorflow as tf

from xtts.shared.audio import mel as stage_1
from xtts.shared.audio.mel_profiles import MEL_PROFILES
from xtts.trainer.data.audio_mel import log_mel, reflected_samples

profiles = pytest.mark.parametrize("profile", MEL_PROFILES.values(), ids=MEL_PROFILES)


def reflected(samples, profile, frames):
    """int16[S] of a clip, as many samples as its frames reach."""
    pad = profile.padding_samples
    return np.pad(samples, pad, mode="reflect")[: reflected_samples(profile, frames)]


def largest_difference(samples, profile, compute):
    expected = stage_1.log_mel(samples.astype(np.float32) / 32768, profile)
    found = compute(reflected(samples, profile, len(expected)), profile)
    assert found.shape == expected.shape
    return np.abs(found - expected).max()


def with_ops(samples, profile):
    return log_mel(tf.constant(samples), profile).numpy()


def compiled(samples, profile):
    return tf.function(lambda x: log_mel(x, profile), jit_compile=True)(tf.constant(samples)).numpy()


@profiles
@pytest.mark.parametrize("compute", [with_ops, compiled])
def test_tones_noise_and_silence(profile, compute):
    random = np.random.default_rng(3)
    time = np.arange(30_011) / profile.sample_rate
    tone = 0.8 * np.sin(2 * np.pi * 220 * time) + 1e-4 * random.standard_normal(len(time))
    noise = 0.1 * random.standard_normal(len(time))
    both = np.concatenate([tone, noise, np.zeros(5000)])
    samples = np.round(both * 32768).clip(-32768, 32767).astype(np.int16)
    assert largest_difference(samples, profile, compute) <= stage_1.MEL_TOLERANCE


@profiles
def test_every_real_clip(real_clips, profile):
    worst = 0.0
    for path in sorted((real_clips / "wavs").glob("*.wav")):
        samples, rate = soundfile.read(path, dtype="float32")
        if rate != profile.sample_rate:
            samples = soxr.resample(samples, rate, profile.sample_rate)
        whole = np.round(samples * 32768).clip(-32768, 32767).astype(np.int16)
        worst = max(worst, largest_difference(whole, profile, with_ops))
    assert 0 < worst <= stage_1.MEL_TOLERANCE


def test_a_float32_fft_would_not_do(monkeypatch):
    """The tolerance can fail: with the samples' own precision the wide frames are off by more."""
    profile = MEL_PROFILES["vocos24"]
    time = np.arange(24_000) / 24_000
    samples = np.round(30_000 * np.sin(2 * np.pi * 220 * time)).astype(np.int16)
    monkeypatch.setattr("xtts.trainer.data.audio_mel.tf.float64", tf.float32)
    assert largest_difference(samples, profile, with_ops) > stage_1.MEL_TOLERANCE


def test_the_shortest_clip():
    for profile in MEL_PROFILES.values():
        samples = np.arange(-300, profile.padding_samples + 1 - 300, dtype=np.int16)
        assert largest_difference(samples, profile, with_ops) <= stage_1.MEL_TOLERANCE
