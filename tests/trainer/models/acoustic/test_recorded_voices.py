"""Recorded voices: perturbation moves what it should, by speaker and only in training; a voice changes the speech."""

import numpy as np
import pytest
import tensorflow as tf
from four_clips import CHANNELS, EULER, VOICES, clips, losses, moved, small_model

from xtts.shared.audio.mel import channel_hertz, log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES, mel_profile
from xtts.shared.audio.speaker_encoder import EMBEDDING, FACTORS, TIMBRE, VARIANTS, VOICE
from xtts.trainer.models.acoustic.networks import Conditioning
from xtts.trainer.models.acoustic.recorded_voices import RecordedVoices, timbre_in_mel, warping_matrices

SEED = tf.constant([3, 5])


def tone(profile, hertz):
    """Log-mel float32[T, M] of half a second."""
    time = np.arange(profile.sample_rate // 2) / profile.sample_rate
    return log_mel((0.3 * np.sin(2 * np.pi * hertz * time)).astype(np.float32), profile)


@pytest.mark.parametrize("name", ["hifigan", "vocos24"])
def test_a_tone_moves_by_the_factor(name):
    profile = MEL_PROFILES[name]
    matrices = warping_matrices(np.array(channel_hertz(profile)))
    np.testing.assert_array_equal(matrices[0], np.eye(profile.mel_channels))
    for hertz in (400.0, 2500.0):
        before = tone(profile, hertz)
        for matrix, factor in zip(matrices, FACTORS, strict=True):
            warped, made = (before @ matrix.T)[10:-10], tone(profile, hertz * factor)[10:-10]
            assert abs(warped.mean(axis=0).argmax() - made.mean(axis=0).argmax()) <= 1
    assert abs(before.mean(axis=0).argmax() - (before @ matrices[-1].T).mean(axis=0).argmax()) > 2


def test_half_of_the_speakers_share_another_voice_among_their_clips():
    factors = np.arange(len(FACTORS), dtype=np.float16)[None, :, None, None]
    marked = np.broadcast_to(10.0 * factors, [200, len(FACTORS), VARIANTS, VOICE])  # the voice tells the factor
    voices = RecordedVoices(marked, mel_profile("hifigan"))
    speaker = np.arange(400, dtype=np.int32) % 200
    mel = np.tile(np.random.default_rng(1).normal(size=[1, 6, 80]).astype(np.float32), [400, 1, 1])
    mel[:, 4:] = 0.0
    found, voice = (part.numpy() for part in voices.draw(mel, tf.constant(speaker), SEED))
    np.testing.assert_array_equal(found[:200], found[200:])
    np.testing.assert_array_equal(found[:, 4:], 0.0)
    factor = np.rint(voice.mean(axis=1) / 10.0).astype(int)
    assert 0.35 < (factor == 0).mean() < 0.65
    assert set(factor) == set(range(len(FACTORS)))
    for row in range(400):
        np.testing.assert_allclose(found[row], mel[row] @ voices.matrices[factor[row]].T, atol=1e-5)
    noise = voice - 10.0 * factor[:, None]
    assert 0.2 < noise[:, :EMBEDDING].std() < 0.4
    assert 0.03 < noise[:, EMBEDDING:].std() < 0.07
    assert not np.array_equal(found, voices.draw(mel, tf.constant(speaker), tf.constant([3, 6]))[0])


def test_only_training_perturbs_and_every_speaker_has_a_voice():
    model = moved(small_model(voices=True, voice_from="recording", dropout=0.0, seed=5))

    def prior(seed, speaker):
        speaker = np.array(speaker, np.int32)
        return losses(model, *map(tf.constant, clips()), dropout_seed=seed, speaker=speaker)[0]["prior"].numpy()

    plain, other = prior(None, [0, 1, 2, 3]), prior(None, [0, 1, 2, 0])
    assert (plain == other).tolist() == [True, True, True, False]
    assert not np.array_equal(prior(SEED, [0, 1, 2, 3]), plain)
    found = model.voices.of_speakers(tf.constant([2]))
    np.testing.assert_allclose(found[0], VOICES[2, 0].astype(np.float32).mean(axis=0), atol=1e-6)


def test_a_timbre_moves_the_mels_that_are_learned_and_those_that_are_spoken():
    """As by another microphone; the layers of a new model do not hear voices yet."""
    model = small_model(voices=True, voice_from="recording", dropout=0.0, seed=6)
    timbre = np.zeros(VOICE, np.float32)
    timbre[EMBEDDING:] = np.linspace(-1.0, 1.0, TIMBRE)
    ids, mel, lengths, *others = clips()
    other_mel, plain = mel + timbre_in_mel(timbre[None], model.profile), model.voices

    def prior(mel, voices):
        model.voices = voices
        return losses(model, ids, mel, lengths, *others)[0]["prior"].numpy()

    def spoken(voice):
        mel, *_ = model.generate(
            ids, lengths, noise=np.zeros([4, 9, CHANNELS], np.float32), schedule=EULER, temperature=1.0, speed=1.0,
            conditioning=Conditioning(voice=np.tile(voice, [4, 1])),
        )
        return mel[:2]  # the third is blank

    other = RecordedVoices(VOICES + timbre, model.profile)
    np.testing.assert_allclose(prior(other_mel, other), prior(mel, plain), rtol=2e-3)
    assert not np.allclose(prior(mel, other), prior(mel, plain), rtol=0.01)
    nobody = np.zeros(VOICE, np.float32)
    difference = spoken(nobody + timbre) - spoken(nobody)
    np.testing.assert_allclose(difference, np.tile(timbre_in_mel(timbre[None], model.profile), [2, 9, 1]), atol=1e-4)
