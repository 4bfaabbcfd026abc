"""Fréchet distance between the mel patches of two sets of speech: what a mean over frames cannot see. Needs only numpy.

Two Gaussians are fitted to patches of a few frames and compared: the distance of Heusel et al. ("GANs trained by a two
time-scale update rule", 1706.08500, eq. 6), which Kilgour et al. (1812.08466) took to audio, without their networks.
Speech that is blurred, over time or frequency, or noisy has another covariance; a distance to the nearest frame rewards
blur. All M channels of a patch count: 32 principal components of the recordings see blur, but no noise.
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

PATCH_FRAMES = 5
AUDIBLE_NATS = 80.0 * np.log(10.0) / 20.0
"""80 dB: what is further below the loudest channel of a clip, such as digital silence, counts as equally silent."""


class FrechetDistance:
    """The distance of speech to a set of recordings."""

    def __init__(self, recordings: Sequence[np.ndarray]) -> None:
        """recordings: log-mels [T, M], natural log."""
        self._recorded = _gaussian(recordings)

    def __call__(self, mels: Sequence[np.ndarray]) -> float:
        """Of speech, log-mels [T, M] each, to the recordings, in squared nats: |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^½).

        The mean of each clip is removed before: how loud it is says nothing of its sound.
        """
        (mean1, covariance1), (mean2, covariance2) = _gaussian(mels), self._recorded
        values, vectors = np.linalg.eigh(covariance1)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        # (C1 C2)^½ and (R C2 R)^½ with R = C1^½ have the same trace; the latter is symmetric.
        crossed = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ covariance2 @ root), 0.0)).sum()
        spread = np.trace(covariance1) + np.trace(covariance2) - 2.0 * crossed
        return float(np.square(mean1 - mean2).sum() + spread)


def distance_of_halves(recordings: Sequence[np.ndarray]) -> float:
    """Between every other recording and the rest: as good as speech can be, but half as much, and of other texts."""
    return FrechetDistance(recordings[1::2])(recordings[::2])


def _gaussian(mels: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(mean [N], covariance [N, N]) of each frame with those after it, N = PATCH_FRAMES * M."""
    audible = (np.maximum(mel.astype(np.float64), mel.max() - AUDIBLE_NATS) for mel in mels if len(mel) >= PATCH_FRAMES)
    levelled = (mel - mel.mean() for mel in audible)
    size = PATCH_FRAMES * mels[0].shape[1]
    count, total, squares = 0, np.zeros(size), np.zeros((size, size))
    for mel in levelled:  # clip by clip: all patches of hours of speech would not fit into memory
        patches = sliding_window_view(mel, PATCH_FRAMES, axis=0).reshape(-1, size)
        count, total, squares = count + len(patches), total + patches.sum(axis=0), squares + patches.T @ patches
    mean = total / count
    return mean, (squares - count * np.outer(mean, mean)) / (count - 1)
