"""The inverse STFT gives back the signal, and agrees with scipy's."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.signal

from xtts.shared.audio.inverse_stft import StftSettings, inverse_stft

VOCOS = StftSettings(fft_size=1024, hop_samples=256, window_samples=1024, centered=True)


def forward(samples, settings):
    """The STFT by definition, one frame at a time: complex128[F, T]."""
    size, hop, length = settings.fft_size, settings.hop_samples, settings.window_samples
    shape = scipy.signal.get_window("boxcar" if settings.window == "rectangular" else settings.window, length)
    window = np.pad(shape, ((size - length) // 2, size - length - (size - length) // 2))
    pad = size // 2 if settings.centered else (size - hop) // 2
    padded = np.pad(samples, pad, mode="reflect")
    frames = [padded[start : start + size] * window for start in range(0, len(padded) - size + 1, hop)]
    spectrum = np.fft.rfft(frames, axis=1).T
    return spectrum / np.sqrt(size) if settings.normalized else spectrum


@pytest.mark.parametrize("settings", [
    VOCOS, replace(VOCOS, centered=False), replace(VOCOS, window_samples=800),
    replace(VOCOS, normalized=True, window="rectangular"),
    replace(VOCOS, fft_size=1200, window_samples=1200, hop_samples=350, centered=True),
])
def test_the_inverse_gives_back_the_signal(settings):
    samples = np.random.default_rng(0).uniform(-0.9, 0.9, 40 * settings.hop_samples)
    restored = inverse_stft(forward(samples, settings), settings)
    assert restored.dtype == np.float32
    assert len(restored) == len(samples)
    # Short windows leave the very end of a signal to a single frame's edge.
    inside = slice(0, len(samples) - settings.fft_size // 2)
    np.testing.assert_allclose(restored[inside], samples[inside], atol=1e-4)


def test_an_inconsistent_spectrum_is_inverted_as_in_scipy():
    """Predicted spectra belong to no signal: then the weights of the overlap decide."""
    random = np.random.default_rng(1)
    spectrum = random.standard_normal((513, 30)) + 1j * random.standard_normal((513, 30))
    spectrum[[0, -1]] = spectrum[[0, -1]].real
    window = scipy.signal.get_window("hann", 1024)
    scale = window.sum()  # scipy's "spectrum" scaling
    _, wanted = scipy.signal.istft(spectrum / scale, window=window, nperseg=1024, noverlap=768)
    np.testing.assert_allclose(inverse_stft(spectrum, VOCOS), wanted, atol=1e-5)
