"""Mel-cepstral distortion between log-mels of unequal length, by dynamic time warping; needs only numpy."""

import math
from collections.abc import Sequence

import numpy as np

CEPSTRA = 13
DECIBELS = 10.0 / math.log(10.0) * math.sqrt(2.0)
"""From a distance between cepstra of natural logarithms to dB (Kubichek, "Mel-cepstral distance measure for objective
speech quality assessment", IEEE PACRIM 1993, eq. 1)."""

_CELLS = 2**22
"""Grid cells warped at once: the part in use then stays in the L2 cache."""


def cepstra(mel: np.ndarray) -> np.ndarray:
    """Cepstra 1 to 13 of each frame, without c_0 (loudness): [T, M], natural-log magnitude -> float32[T, 13].

    c_d = 2/M sum_k mel_k cos(pi d (k + 1/2) / M), the DCT-II scaled so that mel_k = c_0/2 + sum_d c_d cos(...), the
    series that Kubichek's constant applies to.
    """
    channels = mel.shape[1]
    order, place = np.arange(1, CEPSTRA + 1)[:, None], np.arange(channels)[None]
    basis = 2.0 / channels * np.cos(np.pi * order * (place + 0.5) / channels)
    found: np.ndarray = mel.astype(np.float32) @ basis.T.astype(np.float32)
    return found


def warped_distances(query: np.ndarray, references: Sequence[np.ndarray]) -> np.ndarray:
    """MCD-DTW in dB between one clip and each of several: float32[T, 13], [float32[T', 13]] -> float64[R].

    The path runs from start to end of both clips in steps of (1, 1), (1, 0) and (0, 1), and minimises the summed
    distance. The distortion is the mean over the cells of that path.
    """
    longest = max(len(reference) for reference in references)
    some = max(1, _CELLS // (len(query) * longest))
    order = np.argsort([len(reference) for reference in references], kind="stable")
    found = np.empty(len(references))
    for start in range(0, len(order), some):
        chosen = order[start : start + some]
        found[chosen] = _warp(query, [references[i] for i in chosen])
    return DECIBELS * found


def warping_path(query: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The path of `warped_distances` between two clips, cepstra float32[T, 13] each: int[P, 2], pairs of frames."""
    (grid,) = _grids(query, [reference])
    rows, columns = len(query), len(reference)
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0.0
    for diagonal in range(rows + columns - 1):
        i = np.arange(max(0, diagonal - columns + 1), min(diagonal, rows - 1) + 1)
        j = diagonal - i
        total[i + 1, j + 1] = grid[i, j] + np.minimum(total[i, j], np.minimum(total[i, j + 1], total[i + 1, j]))
    row, column, path = rows, columns, [(rows - 1, columns - 1)]
    while (row, column) != (1, 1):
        before = ((row - 1, column - 1), (row - 1, column), (row, column - 1))
        row, column = min(before, key=lambda cell: float(total[cell]))
        path.append((row - 1, column - 1))
    return np.array(path[::-1])


def _grids(query: np.ndarray, references: Sequence[np.ndarray]) -> np.ndarray:
    """Euclidean distances, float32[R, T, T'], T' of the longest reference, at least 2; padding is arbitrary."""
    width = max(2, *(len(reference) for reference in references))
    padded = np.stack([np.pad(reference, [(0, width - len(reference)), (0, 0)]) for reference in references])
    squares = np.square(query).sum(axis=1)[:, None] + np.square(padded).sum(axis=2)[:, None]
    squares -= 2.0 * (query @ padded.transpose(0, 2, 1))
    np.maximum(squares, 0.0, out=squares)
    roots: np.ndarray = np.sqrt(squares, out=squares)
    return roots


def _warp(query: np.ndarray, references: Sequence[np.ndarray]) -> np.ndarray:
    """Mean distance along the best path, float64[R]: all references at once, anti-diagonal by anti-diagonal."""
    grids = _grids(query, references)
    count, rows, columns = grids.shape
    flat = grids.reshape(count, rows * columns)
    blank = np.full((count, rows + 1), np.inf, np.float32)  # entry i + 1 is row i; rows outside stay infinite
    zeros = np.zeros((count, rows + 1), np.float32)
    before, last = (blank, zeros), (blank, zeros)
    ends: dict[int, list[int]] = {}
    for number, reference in enumerate(references):
        ends.setdefault(rows + len(reference) - 2, []).append(number)
    means = np.empty(count)
    for diagonal in range(max(ends) + 1):
        low, high = max(0, diagonal - columns + 1), min(diagonal, rows - 1) + 1
        first = low * columns + diagonal - low
        cost = flat[:, first : first + (high - low - 1) * (columns - 1) + 1 : columns - 1]
        total, cells = blank.copy(), zeros.copy()
        best, steps = _cheapest(before, last, low, high) if diagonal else (np.float32(0), np.float32(0))
        total[:, low + 1 : high + 1] = best + cost
        cells[:, low + 1 : high + 1] = steps + np.float32(1)
        for number in ends.get(diagonal, ()):
            means[number] = total[number, rows] / cells[number, rows]
        before, last = last, (total, cells)
    return means


def _cheapest(
    before: tuple[np.ndarray, np.ndarray], last: tuple[np.ndarray, np.ndarray], low: int, high: int
) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest of a cell's three predecessors (the diagonal one if equal), and the length of its path."""
    (diagonal, diagonal_cells), (straight, straight_cells) = before, last
    best, steps = diagonal[:, low:high], diagonal_cells[:, low:high]
    for shift in (0, 1):
        other = straight[:, low + shift : high + shift]
        better = other < best
        best = np.where(better, other, best)
        steps = np.where(better, straight_cells[:, low + shift : high + shift], steps)
    return best, steps
