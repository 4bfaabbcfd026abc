"""The inverse short-time Fourier transform, for vocoders that predict a spectrum."""

from dataclasses import dataclass

import numpy as np

WINDOWS = ("hann", "rectangular")
"""Known windows; `hann` is periodic."""

_SMALLEST_WEIGHT = 1e-8
"""Where the squared windows sum up to less, no frame says anything about a sample."""


@dataclass(frozen=True, kw_only=True)
class StftSettings:
    """How a spectrum was computed; `hop_samples <= window_samples <= fft_size`."""

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
        """Frequencies F of a frame."""
        return self.fft_size // 2 + 1


def inverse_stft(spectrum: np.ndarray, settings: StftSettings) -> np.ndarray:
    """Samples whose short-time spectrum is nearest to the given one, by overlap-add with squared-window weights.

    spectrum: complex[F, T]. Returns float32[S] with S = (T - 1) * hop when centered and else T * hop; what the padding
    added at both ends is cut off.
    """
    import scipy.fft  # a tenth of a second

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
    """float32[n_fft]."""
    length = settings.window_samples
    place = np.arange(length)
    shape = np.ones(length) if settings.window == "rectangular" else 0.5 - 0.5 * np.cos(2 * np.pi * place / length)
    before = (settings.fft_size - length) // 2
    return np.pad(shape, (before, settings.fft_size - length - before)).astype(np.float32)


def overlap_add(frames: np.ndarray, hop: int) -> np.ndarray:
    """The sum of frames float32[T, n_fft], each a hop after the one before: float32[S], S at least n_fft + (T-1)*hop.

    Every frame is split into blocks of a hop, so that block i of all frames is added at once.
    """
    count, size = frames.shape
    blocks = -(-size // hop)
    split = np.pad(frames, ((0, 0), (0, blocks * hop - size))).reshape(count, blocks, hop)
    total = np.zeros((count + blocks - 1, hop), np.float32)
    for block in range(blocks):
        total[block : block + count] += split[:, block]
    return total.reshape(-1)
