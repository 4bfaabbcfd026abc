"""Inverse short-time Fourier transform, for vocoders that predict a spectrum."""

from dataclasses import dataclass

import numpy as np

WINDOWS = ("hann", "rectangular")
"""Windows to choose from; `hann` is periodic."""

_SMALLEST_WEIGHT = 1e-8
"""Sum of squared windows below which no frame determines a sample."""


@dataclass(frozen=True, kw_only=True)
class StftSettings:
    """Settings of a spectrum; `hop_samples <= window_samples <= fft_size`."""

    fft_size: int
    """Even number of samples."""
    hop_samples: int
    window_samples: int
    """The window is centred in `fft_size` samples."""
    centered: bool
    """True: frame t is centred at sample t*hop. False: at t*hop + hop/2."""
    window: str = "hann"
    """One of `WINDOWS`."""
    normalized: bool = False
    """Whether the spectrum was divided by the root of `fft_size`."""

    @property
    def bins(self) -> int:
        """Frequency bins F per frame."""
        return self.fft_size // 2 + 1


def inverse_stft(spectrum: np.ndarray, settings: StftSettings) -> np.ndarray:
    """Return the samples whose short-time spectrum is nearest to `spectrum`: overlap-add with squared-window weights.

    spectrum: complex[F, T]. Returns float32[S] without padding: S = (T - 1) * hop if centered, else T * hop.
    """
    import scipy.fft  # takes 0.1 s

    size, hop, count = settings.fft_size, settings.hop_samples, spectrum.shape[1]
    window = _window(settings)
    frames = scipy.fft.irfft(spectrum.T.astype(np.complex64), n=size, axis=1)
    if settings.normalized:
        frames *= np.sqrt(np.float32(size))
    samples = overlap_add(frames * window, hop)
    weights = overlap_add(np.broadcast_to(window**2, frames.shape), hop)
    samples /= np.maximum(weights, _SMALLEST_WEIGHT)
    start = size // 2 if settings.centered else (size - hop) // 2
    length = hop * (count - 1 if settings.centered else count)
    return samples[start : start + length].astype(np.float32)


def _window(settings: StftSettings) -> np.ndarray:
    """Return the window, float32[n_fft]."""
    length = settings.window_samples
    n = np.arange(length)
    window = np.ones(length) if settings.window == "rectangular" else 0.5 - 0.5 * np.cos(2 * np.pi * n / length)
    left = (settings.fft_size - length) // 2
    return np.pad(window, (left, settings.fft_size - length - left)).astype(np.float32)


def overlap_add(frames: np.ndarray, hop: int) -> np.ndarray:
    """Add up frames float32[T, n_fft], one per hop: float32[S], S at least n_fft + (T-1)*hop.

    Frames are split into blocks of a hop, and block i of all frames is added at once.
    """
    count, size = frames.shape
    blocks = -(-size // hop)
    split = np.pad(frames, ((0, 0), (0, blocks * hop - size))).reshape(count, blocks, hop)
    total = np.zeros((count + blocks - 1, hop), np.float32)
    for block in range(blocks):
        total[block : block + count] += split[:, block]
    return total.reshape(-1)
