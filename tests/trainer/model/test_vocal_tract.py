"""Vocal tract length perturbation moves what it should, by speaker, and only in training with voice latents."""

import numpy as np
import pytest
import tensorflow as tf
from four_clips import clips, losses, small_model

from xtts.shared.audio.mel import channel_hertz, log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES
from xtts.trainer.model.reference_encoder import perturb_vocal_tracts, warping_matrices

MOST = 0.2
SEED = tf.constant([3, 5])


def tone(profile, hertz):
    """Log-mel float32[T, M] of half a second."""
    time = np.arange(profile.sample_rate // 2) / profile.sample_rate
    return log_mel((0.3 * np.sin(2 * np.pi * hertz * time)).astype(np.float32), profile)


@pytest.mark.parametrize("name", ["hifigan", "vocos24"])
def test_a_tone_moves_by_the_factor(name):
    profile = MEL_PROFILES[name]
    matrices = warping_matrices(np.array(channel_hertz(profile)), MOST)
    factors = (1 + MOST) ** np.linspace(-1, 1, len(matrices))
    for hertz in (400.0, 2500.0):
        before = tone(profile, hertz)
        for matrix, factor in zip(matrices, factors, strict=True):
            moved, made = (before @ matrix.T)[10:-10], tone(profile, hertz * factor)[10:-10]
            assert abs(moved.mean(axis=0).argmax() - made.mean(axis=0).argmax()) <= 1
    assert abs(before.mean(axis=0).argmax() - (before @ matrices[-1].T).mean(axis=0).argmax()) > 2


def test_half_of_the_speakers_share_a_factor_among_their_clips():
    matrices = warping_matrices(np.linspace(50.0, 8000.0, 16), MOST)
    speaker = np.arange(400, dtype=np.int32) % 200
    mel = np.tile(np.random.default_rng(1).normal(size=[1, 6, 16]).astype(np.float32), [400, 1, 1])
    mel[:, 4:] = 0.0
    found = perturb_vocal_tracts(mel, tf.constant(speaker), matrices, SEED).numpy()
    np.testing.assert_array_equal(found[:200], found[200:])
    np.testing.assert_array_equal(found[:, 4:], 0.0)
    kept = (found[:200] == mel[:200]).all(axis=(1, 2))
    assert 0.35 < kept.mean() < 0.65
    assert len(np.unique(found[:200, 0, 8])) == len(matrices) + 1
    other = perturb_vocal_tracts(mel, tf.constant(speaker), matrices, tf.constant([3, 6])).numpy()
    assert not np.array_equal(found, other)
    alone = perturb_vocal_tracts(mel, tf.zeros([400], tf.int32), matrices, SEED).numpy()
    assert (alone == alone[0]).all()


def test_only_training_with_voice_latents_is_perturbed():
    voice = {"voice_latents": 4, "voice_width": 16, "dropout": 0.0, "seed": 5}
    changed, unchanged = small_model(**voice, voice_vtlp=MOST), small_model(**voice, voice_vtlp=0.0)
    speaker = np.arange(4, dtype=np.int32)

    def of(model, seed):
        return losses(model, *map(tf.constant, clips()), dropout_seed=seed, speaker=speaker)[0]["prior"]

    assert not np.array_equal(*(of(model, SEED) for model in (changed, unchanged)))
    np.testing.assert_array_equal(of(changed, None), of(unchanged, None))
    assert small_model(voice_vtlp=MOST).vocal_tracts is None
