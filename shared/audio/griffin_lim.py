"""Log-mel to sound without a trained vocoder: Griffin-Lim over all spectra with the given mel."""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from xtts.shared.audio.mel import hann_window, mel_filterbank
from xtts.shared.audio.mel_profiles import MelProfile

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_ITERATIONS = 60
_MOMENTUM = 0.99
"""Perraudin, Balazs and Sondergaard, "A fast Griffin-Lim algorithm", WASPAA 2013; 1.1 and more sound worse."""

_SMALLEST, _SMALLEST_WEIGHT = 1e-9, 1e-4
"""Smallest magnitude or mel, and sum of squared windows: only samples at the edges, which are cut, have less."""


def reconstruct(mel: np.ndarray, profile: MelProfile) -> np.ndarray:
    """Return samples whose log-mel is close to `mel`; deterministic.

    mel: [T, M], natural-log magnitude, without padding. Returns float32[S] in -1 to 1, with `profile.frames(S) == T`.

    Griffin-Lim keeps a magnitude and searches its phases. But a mel has less detail: 80 channels do not resolve the
    harmonics above 1 kHz, and no phases fit a spectrum without them. So the magnitude changes, too: in every iteration
    it is that of the consistent spectrum, brought back to the mel by a multiplicative update
    m <- m * B'(mel / Bm) / B'1, that of Lee and Seung (NIPS 2000) for the Kullback-Leibler divergence.
    """
    import scipy.fft  # takes 0.1 s

    size, hop, count = profile.fft_size, profile.hop_samples, len(mel)
    down, up = _matrices(profile)
    window, target = hann_window(profile, np.dtype(np.float32)), np.exp(mel.astype(np.float32))
    weights = np.maximum(_overlap_add(np.broadcast_to(window**2, (count, size)), hop), _SMALLEST_WEIGHT)

    def fit(magnitude: np.ndarray) -> np.ndarray:
        magnitude *= (target / np.maximum(magnitude @ down, _SMALLEST)) @ up
        return magnitude

    def sound(spectrum: np.ndarray) -> np.ndarray:
        frames: np.ndarray = scipy.fft.irfft(spectrum, n=size, axis=1)
        samples: np.ndarray = _overlap_add(frames * window, hop) / weights
        return samples

    bins = down.shape[0]
    start = fit(np.ones((count, bins), np.float32))
    phases = np.random.default_rng(0).random(start.shape, dtype=np.float32)
    spectrum, previous = start * np.exp(np.complex64(2j * np.pi) * phases), None
    for _ in range(_ITERATIONS):
        frames = sliding_window_view(sound(spectrum), size)[::hop][:count]
        consistent = scipy.fft.rfft(frames * window, axis=1)[:, :bins]
        ahead = consistent if previous is None else (1 + _MOMENTUM) * consistent - _MOMENTUM * previous
        previous = consistent
        spectrum = ahead * (fit(np.abs(consistent) + _SMALLEST) / np.maximum(np.abs(ahead), _SMALLEST))
    first = profile.padding_samples
    samples: np.ndarray = sound(spectrum)[first : first + shortest_samples(count, profile)]
    clipped: np.ndarray = np.clip(samples, -1.0, 1.0)
    return clipped


def shortest_samples(frames: int, profile: MelProfile) -> int:
    """Return the fewest samples S that give `frames` frames."""
    return profile.hop_samples * (frames - 1 if profile.centered else frames)


@lru_cache
def _matrices(profile: MelProfile) -> "tuple[csc_array, csc_array]":
    """Return the filterbank [F, M] and its transpose divided by each bin's sum [M, F]; F: up to the last bin in use.

    Both float32 and sparse, two entries per bin: dense products would take most of the time.
    """
    from scipy.sparse import csc_array

    bank = mel_filterbank(profile)
    bank = bank[:, : int(np.flatnonzero(bank.any(axis=0)).max()) + 1]
    shares = bank / np.maximum(bank.sum(axis=0), _SMALLEST)
    return csc_array(bank.T.astype(np.float32)), csc_array(shares.astype(np.float32))


def _overlap_add(frames: np.ndarray, hop: int) -> np.ndarray:
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
