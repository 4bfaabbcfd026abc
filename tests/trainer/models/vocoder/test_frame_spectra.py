"""Fourier transforms by small matrices: they are numpy's, and a spectrum is brought to a mel."""

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer.models.vocoder.frame_spectra import FrameSpectra

PROFILE = mel_profile("hifigan")
SIZE, HOP, FRAMES = PROFILE.fft_size, PROFILE.hop_samples, 12
PADDED = np.random.default_rng(0).standard_normal((2, (FRAMES - 1) * HOP + SIZE)).astype(np.float32)


@pytest.fixture(scope="module")
def spectra():
    return FrameSpectra(PROFILE)


def analyse(spectra, padded):
    return spectra.analyse(spectra.hops(tf.constant(padded)))


def test_bins_are_those_of_numpy_on_a_grid(spectra):
    real, imaginary = analyse(spectra, PADDED)
    frames = np.lib.stride_tricks.sliding_window_view(PADDED, SIZE, axis=1)[:, ::HOP]
    rows, columns = 17, 32
    grid = (np.arange(rows) + SIZE // columns * np.arange(columns)[:, None]).ravel()
    expected = np.moveaxis(np.fft.fft(frames * spectra.window)[..., grid], 2, 0)
    np.testing.assert_allclose(real, expected.real, atol=1e-4)
    np.testing.assert_allclose(imaginary, expected.imag, atol=1e-4)
    assert set(np.minimum(grid, SIZE - grid)) == set(range(SIZE // 2 + 1))


def test_a_spectrum_gives_its_samples_again(spectra):
    again = spectra.samples(spectra.synthesise(analyse(spectra, PADDED)))
    inside = slice(HOP, -HOP)  # the window is close to zero at the edges
    np.testing.assert_allclose(again[:, inside], PADDED[:, inside], atol=1e-4)


def test_a_filter_turns_every_bin_by_its_phase(spectra):
    delay, bins = 40, SIZE // 2 + 1
    bias = -2.0 * np.pi * delay / SIZE * np.arange(bins, dtype=np.float32)
    phase = spectra.project(tf.zeros([2, FRAMES, 1]), tf.zeros([1, bins]), tf.constant(bias), odd=True)
    pulses = np.zeros_like(PADDED)
    pulses[:, SIZE // 2 :: SIZE] = 1.0
    filtered = spectra.filter(analyse(spectra, pulses), 2.0 * tf.ones(phase.shape), phase)
    later = spectra.samples(spectra.synthesise(filtered))
    peak = int(np.argmax(later[0, : 2 * SIZE]))
    assert (peak - SIZE // 2) % SIZE == delay
    assert float(later[0, peak]) == pytest.approx(2.0, abs=0.2)


def test_the_mel_is_that_of_a_clip_and_a_spectrum_is_brought_to_it(spectra):
    sound, padding = PADDED[:, : FRAMES * HOP] * 0.1, PROFILE.padding_samples
    padded = tf.pad(tf.constant(sound), [[0, 0], [padding, padding]], mode="REFLECT")
    spectrum = analyse(spectra, padded)
    wanted = np.exp(np.stack([log_mel(samples, PROFILE).T for samples in sound], axis=1))
    np.testing.assert_allclose(spectra.mel(spectrum, 0.0), wanted, rtol=2e-3)
    louder = wanted * np.linspace(0.2, 5.0, PROFILE.mel_channels, dtype=np.float32)[:, None, None]
    matched = spectra.mel(spectra.matched(spectrum, louder), 0.0)
    assert np.abs(np.log(matched / louder)).mean() < 0.1 * np.abs(np.log(wanted / louder)).mean()
