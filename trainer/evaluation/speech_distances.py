"""Distances of speech from a recording: mel-cepstral distortion, a Fréchet distance over mel patches, melody, pauses.

None of them needs TensorFlow.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import dct

from xtts.shared.audio.pitch import HIGHEST_HZ, LOWEST_HZ

CEPSTRA = 13
DECIBELS = 10.0 / math.log(10.0) * math.sqrt(2.0)
"""Factor from a distance between cepstra of natural logarithms to dB (Kubichek, "Mel-cepstral distance measure for
objective speech quality assessment", IEEE PACRIM 1993, eq. 1)."""

PATCH_FRAMES = 5
AUDIBLE_NATS = 80.0 * np.log(10.0) / 20.0
"""80 dB: everything further below the loudest channel of a clip, such as digital silence, counts as equally silent."""
RANGE_LOG_F0 = math.log(HIGHEST_HZ / LOWEST_HZ)


def cepstra(mel: np.ndarray) -> np.ndarray:
    """Compute cepstra 1 to 13 of each frame, without c_0 (loudness): [T, M], natural-log magnitude -> float32[T, 13].

    c_d = 2/M sum_k mel_k cos(pi d (k + 1/2) / M), the DCT-II scaled so that mel_k = c_0/2 + sum_d c_d cos(...), the
    series that Kubichek's constant applies to.
    """
    return np.ascontiguousarray(dct(mel.astype(np.float32), axis=1)[:, 1 : CEPSTRA + 1] / mel.shape[1])


def warped_distances(query: np.ndarray, references: Sequence[np.ndarray]) -> np.ndarray:
    """MCD-DTW in dB between one clip and each of several: float32[T, 13], R float32[T', 13] -> float64[R].

    It is the mean distance over the cells of `warping_path`.
    """
    warp = _compiled_warp()
    return DECIBELS * np.array([warp(query, np.ascontiguousarray(reference.T))[0] for reference in references])


def warping_path(query: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Find the cheapest path between two clips, cepstra float32[T, 13] each: int[P, 2], pairs of frames.

    It runs from the start to the end of both in steps of (1, 1), (1, 0) and (0, 1), and minimises the summed distance.
    """
    return _compiled_warp()(query, np.ascontiguousarray(reference.T))[1]


@cache
def _compiled_warp() -> Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]:
    """Compile `_warp`. Not cached on disk: two processes that write numba's files at once damage them (10128)."""
    import numba  # half a second

    compiled: Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]] = numba.njit(_warp)
    return compiled


def _warp(query: np.ndarray, reference: np.ndarray) -> tuple[float, np.ndarray]:
    """Find (mean distance along the cheapest path, the path int64[P, 2]); of equal predecessors the diagonal one.

    query: float32[T, 13], reference: float32[13, T'].
    """
    rows, columns = len(query), reference.shape[1]
    total = np.full(columns + 1, np.inf)  # cheapest sums of the previous row, overwritten by those of the current one
    total[0] = 0.0
    moves = np.zeros((rows, columns), np.int8)  # 0: diagonal, 1: from the previous row, 2: from the previous column
    for row in range(rows):
        squares = np.zeros(columns, np.float32)
        for k in range(len(reference)):
            squares += (query[row, k] - reference[k]) ** 2
        distances = np.sqrt(squares)
        corner = total[0]
        total[0] = np.inf
        for column in range(columns):
            best, move = corner, 0
            corner = total[column + 1]
            if corner < best:
                best, move = corner, 1
            if total[column] < best:
                best, move = total[column], 2
            total[column + 1] = best + distances[column]
            moves[row, column] = move
    path = np.empty((rows + columns, 2), np.int64)
    row, column, first = rows - 1, columns - 1, rows + columns
    while row >= 0 and column >= 0:
        first -= 1
        path[first, 0], path[first, 1] = row, column
        move = moves[row, column]
        row, column = row - (move != 2), column - (move != 1)
    return total[columns] / (rows + columns - first), path[first:]


def frechet_distance(mels: Sequence[np.ndarray], recordings: Sequence[np.ndarray]) -> float:
    """Fréchet distance of speech to recordings by their mel patches, in squared nats; log-mels [T, M], natural log.

    Two Gaussians are fitted to patches of a few frames and compared, |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^½): the
    distance of Heusel et al. ("GANs trained by a two time-scale update rule", 1706.08500, eq. 6), applied to audio by
    Kilgour et al. (1812.08466), without their networks. It sees what a mean over frames cannot: speech that is blurred
    over time or frequency, or noisy, has a different covariance; a distance to the nearest frame rewards blur. All M
    channels of a patch count: 32 principal components of the recordings see blur, but no noise. The mean of each clip
    is removed first: loudness says nothing about the quality of a sound.
    """
    (mean1, covariance1), (mean2, covariance2) = _gaussian(mels), _gaussian(recordings)
    values, vectors = np.linalg.eigh(covariance1)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    # (C1 C2)^½ and (R C2 R)^½ with R = C1^½ have the same trace; the latter is symmetric.
    crossed = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ covariance2 @ root), 0.0)).sum()
    spread = np.trace(covariance1) + np.trace(covariance2) - 2.0 * crossed
    return float(np.square(mean1 - mean2).sum() + spread)


def _gaussian(mels: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Fit (mean [D], covariance [D, D]) of all patches of PATCH_FRAMES frames, D = PATCH_FRAMES * M."""
    audible = (np.maximum(mel.astype(np.float64), mel.max() - AUDIBLE_NATS) for mel in mels if len(mel) >= PATCH_FRAMES)
    levelled = (mel - mel.mean() for mel in audible)
    size = PATCH_FRAMES * mels[0].shape[1]
    count, total, squares = 0, np.zeros(size), np.zeros((size, size))
    for mel in levelled:  # clip by clip: all patches of hours of speech would not fit into memory
        patches = sliding_window_view(mel, PATCH_FRAMES, axis=0).reshape(-1, size)
        count, total, squares = count + len(patches), total + patches.sum(axis=0), squares + patches.T @ patches
    mean = total / count
    return mean, (squares - count * np.outer(mean, mean)) / (count - 1)


def pitch_errors(track: np.ndarray, recorded: np.ndarray, path: np.ndarray) -> tuple[float | None, float]:
    """Compare F0 of two clips along a warping path: (log-F0 error, voicing error), as in `SentenceFigures`.

    track: float32[T], recorded: float32[T'], Hz, 0 where unvoiced; path: int[P, 2].
    """
    spoken, reference = track[path[:, 0]], recorded[path[:, 1]]
    both = (spoken > 0) & (reference > 0)
    error = np.log(spoken[both] / reference[both])
    log_f0_error = float(np.sqrt(np.mean(error**2))) if both.any() else None
    return log_f0_error, float(np.mean((spoken > 0) != (reference > 0)))
