"""The vocoder: pulses, spectra, what its losses train, and that it speaks outside training as in it."""

import numpy as np
import pytest
import soxr
import tensorflow as tf

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.model_config import VocoderConfig
from xtts.trainer.data.batch import CropBatch
from xtts.trainer.models.vocoder.vocoder import (
    VOCODER,
    Vocoder,
    VocoderObjective,
    constant_noise,
    pulse_train,
    recorded_band,
)

PROFILE = mel_profile("hifigan")
HOP, RATE, FRAMES = PROFILE.hop_samples, PROFILE.sample_rate, 24


@pytest.fixture(scope="module")
def vocoder():
    config = VocoderConfig(width=16, blocks=1, expansion=2, discriminator_width=8)
    return Vocoder(config, PROFILE, seed=3)


@pytest.fixture(scope="module")
def crops(vocoder):
    """Two crops of pulses in noise."""
    log_hertz = np.log(np.linspace([120, 180], [150, 170], FRAMES, axis=1)).astype(np.float32)
    noise = np.random.default_rng(0).standard_normal((2, FRAMES * HOP))
    samples = (0.05 * pulse_train(log_hertz, PROFILE).numpy() + 0.01 * noise).astype(np.float32)
    waveform, voiced = tf.cast(samples * 32_768.0, tf.int16), tf.ones([2, FRAMES], tf.uint8)
    return CropBatch(vocoder.log_mel(samples), tf.fill([2], FRAMES), waveform, tf.constant(log_hertz), voiced)


def losses(vocoder, crops, seed=5):
    sums = vocoder.losses(crops, tf.range(2), tf.constant([seed, 0]))
    return {name: tf.reduce_sum(sums[name]) for name in VOCODER.losses}


def test_pulses_follow_the_pitch_smoothly_with_power_1():
    hertz = np.linspace(100.0, 140.0, 200)
    pulses = pulse_train(tf.constant(np.log(hertz)[None], tf.float32), PROFILE, tf.constant([0.25])).numpy()[0]
    place = (np.arange(200 * HOP) + 0.5) / HOP - 0.5
    phase = 0.25 + np.cumsum(np.interp(place, np.arange(200), hertz)) / RATE
    peaks = np.flatnonzero((pulses[1:-1] > pulses[:-2]) & (pulses[1:-1] > pulses[2:]) & (pulses[1:-1] > 5)) + 1
    assert len(peaks) == int(phase[-1])
    np.testing.assert_allclose(phase[peaks], np.round(phase[peaks]), atol=0.01)
    assert np.mean(pulses**2) == pytest.approx(1.0, abs=0.05)


def test_noise_is_standard_normal_white_and_the_same_each_time():
    noise = constant_noise(tf.constant(50_000)).numpy()[0]
    np.testing.assert_array_equal(noise[:100], constant_noise(tf.constant(100)).numpy()[0])
    assert (noise.mean(), noise.std()) == (pytest.approx(0.0, abs=0.02), pytest.approx(1.0, abs=0.02))
    assert abs(np.corrcoef(noise[:40_000], noise[4093 : 4093 + 40_000])[0, 1]) < 0.6  # one table of two begins again


def test_generator_and_discriminators_have_separate_losses(vocoder, crops):
    with tf.GradientTape(persistent=True) as tape:
        found = losses(vocoder, crops)
    for name in VOCODER.losses:
        gradients = tape.gradient(found[name], vocoder.trainable_variables)
        moved = {
            "/discriminator_" in weight.path
            for weight, gradient in zip(vocoder.trainable_variables, gradients, strict=True)
            if gradient is not None and np.abs(tf.convert_to_tensor(gradient)).max() > 0
        }
        assert moved == {name == "discriminators"}, name


def test_noise_rises_and_falls_within_a_frame(vocoder, crops):
    bias = vocoder.noise_envelope.bias
    bias.assign(np.eye(8)[2] * 3.0)
    gain = vocoder.gains(crops.mel, crops.log_hertz, tf.ones([2, FRAMES]))[3].numpy()
    bias.assign(np.zeros(8))
    frames = gain.reshape(2, FRAMES, 8, HOP // 8).mean(axis=3)
    assert (frames.argmax(axis=2) == 2).all()
    assert (frames[..., 2] > 8 * frames[..., 5]).all()


def test_speech_has_the_mel_that_was_asked_for(vocoder, crops):
    spoken = vocoder.vocode(crops.mel[:1])
    assert spoken.shape == (1, FRAMES * HOP)
    error = np.abs(vocoder.log_mel(spoken) - crops.mel[:1])[:, 4:-4].mean()
    assert error < 0.22  # the weights are random: 0.33 before it is brought to the mel


def test_noise_on_the_mel_does_not_reach_the_mel_that_speech_is_brought_to(vocoder, crops):
    noisy, clean = (
        np.mean(vocoder.losses(crops, tf.range(2), tf.constant([7, 0]), with_noise=with_noise)["mel"])
        for with_noise in (True, False)
    )
    assert 0 < abs(noisy - clean) < 0.005  # 0.03 if it did


def dulled(waveform):
    """Crops like those of recordings at 16 kHz."""
    samples = waveform.numpy().T / 32_768
    dull = soxr.resample(soxr.resample(samples, RATE, 16_000), 16_000, RATE)[: len(samples)].T
    return tf.cast(np.round(dull * 32_768), tf.int16)


def test_a_recording_that_ends_at_8_khz_teaches_nothing_above(vocoder, crops):
    """Its losses do not change with the noise that the vocoder makes there; those of one with the whole band do."""
    waveform = tf.concat([crops.waveform[:1], dulled(crops.waveform)[1:]], axis=0)
    np.testing.assert_array_equal(recorded_band(tf.cast(waveform, tf.float32) / 32_768, PROFILE), [np.inf, 8_000])
    mixed, bias = crops._replace(waveform=waveform), vocoder.noise_output.bias
    before, hertz = bias.numpy(), np.linspace(0, RATE / 2, vocoder.bins)
    found = []
    for louder in (0.0, 2.0):
        bias.assign(before + np.where(hertz > 8_100, louder, 0.0))
        found.append(vocoder.losses(mixed, tf.range(2), tf.constant([5, 0])))
    bias.assign(before)
    for name in ("spectrum", "adversary", "features", "discriminators"):
        (whole, of_dull), (louder_whole, louder_dull) = (losses[name].numpy() for losses in found)
        np.testing.assert_allclose(louder_dull, of_dull, rtol=2e-3, err_msg=name)
        assert abs(louder_whole / whole - 1) > 2e-2, name


def test_a_crop_counts_by_its_useful_frames_and_a_padding_row_not_at_all(vocoder, crops):
    objective = VocoderObjective(vocoder)
    whole, half, padding = (
        objective.loss_sums(crops._replace(mel_length=tf.constant(lengths)), (tf.range(2), tf.constant([5, 0])))
        for lengths in ([FRAMES, FRAMES], [FRAMES, FRAMES // 2], [FRAMES, 0])
    )
    for name in VOCODER.losses:
        np.testing.assert_allclose(half[name], whole[name] * [1.0, 0.5], rtol=1e-5)
        np.testing.assert_allclose(padding[name], whole[name] * [1.0, 0.0], rtol=1e-5)
