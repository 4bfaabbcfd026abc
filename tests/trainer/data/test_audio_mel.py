"""TensorFlow's log-mel against stage 1's, in the ops of the input pipeline and compiled as in the step."""

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.audio import mel as stage_1
from xtts.shared.audio.mel_profiles import EDGE_FRAMES, MEL_PROFILES
from xtts.trainer.data.audio_mel import log_mel, reflected_samples


def largest_difference(samples, profile, *, compiled=False):
    """Of the log-mels of int16[S]; TensorFlow gets as many reflected samples as the frames reach."""
    expected = stage_1.log_mel(samples.astype(np.float32) / 32768, profile)
    reached = reflected_samples(profile, len(expected) + 2 * EDGE_FRAMES)
    reflected = np.pad(samples, profile.padding_samples, mode="reflect")[:reached]
    found = tf.function(lambda x: log_mel(x, profile), jit_compile=compiled)(tf.constant(reflected)).numpy()
    assert found.shape == expected.shape
    return np.abs(found - expected).max()


def rounded(signal):
    return np.round(signal * 32768).clip(-32768, 32767).astype(np.int16)


@pytest.mark.parametrize("profile", MEL_PROFILES.values(), ids=MEL_PROFILES)
@pytest.mark.parametrize("compiled", [False, True], ids=["ops", "xla"])
def test_tones_noise_silence_and_the_shortest_clip(profile, compiled):
    random = np.random.default_rng(3)
    time = np.arange(30_011) / profile.sample_rate
    tone = 0.8 * np.sin(2 * np.pi * 220 * time) + 1e-4 * random.standard_normal(len(time))
    noise = 0.1 * random.standard_normal(len(time))
    both = rounded(np.concatenate([tone, noise, np.zeros(5000)]))
    assert largest_difference(both, profile, compiled=compiled) <= stage_1.MEL_TOLERANCE
    loud = rounded(30_000 / 32768 * np.sin(2 * np.pi * 220 * np.arange(24_000) / 24_000))
    assert largest_difference(loud, profile, compiled=compiled) <= stage_1.MEL_TOLERANCE  # not with an FFT in float32
    shortest = np.arange(-300, profile.padding_samples + 1 - 300, dtype=np.int16)
    assert largest_difference(shortest, profile) <= stage_1.MEL_TOLERANCE
