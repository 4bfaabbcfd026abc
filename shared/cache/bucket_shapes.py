"""Choosing the closed set of shapes from the corpus' own lengths."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STEP = 8
"""Heights are multiples of 8, which tensor cores and vector units like."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """L tokens and T frames that a bucket's records are padded to."""

    tokens: int
    frames: int


def round_up(length: int) -> int:
    """Round up to a multiple of `STEP`, never to 0."""
    return max(STEP, -(-length // STEP) * STEP)


def best_heights(frames: Sequence[int], buckets: int) -> list[int]:
    """At most `buckets` heights that hold all lengths with the fewest stored frames (dynamic programming).

    frames: the clips' lengths. The last height covers the longest clip; fewer distinct heights than `buckets`
    give fewer buckets.
    """
    heights, counts = np.unique([round_up(length) for length in frames], return_counts=True)
    before = np.concatenate([[0], np.cumsum(counts)])  # clips below candidate j
    # stored[j]: fewest frames that hold the first j candidates with the buckets used so far
    stored = before * np.concatenate([[0], heights])
    choices = []
    for _ in range(min(buckets, len(heights)) - 1):
        chosen, better = np.zeros(len(stored), np.int64), stored.copy()
        for j in range(1, len(stored)):
            costs = stored[:j] + (before[j] - before[:j]) * heights[j - 1]
            chosen[j] = np.argmin(costs)
            better[j] = costs[chosen[j]]
        choices.append(chosen)
        stored = better
    ends = [len(heights)]
    for chosen in reversed(choices):
        ends.append(int(chosen[ends[-1]]))
    return [int(heights[end - 1]) for end in reversed(ends) if end > 0]


def choose_shapes(lengths: Sequence[tuple[int, int]], buckets: int) -> list[Shape]:
    """The shapes for clips of (tokens, frames): best heights, and the longest text of each rounded up."""
    heights = best_heights([frames for _, frames in lengths], buckets)
    longest = [0] * len(heights)
    for tokens, frames in lengths:
        at = int(np.searchsorted(heights, frames))
        longest[at] = max(longest[at], tokens)
    return [Shape(tokens=round_up(top), frames=height) for top, height in zip(longest, heights, strict=True)]


def fitting_bucket(shapes: Sequence[Shape], tokens: int, frames: int) -> int | None:
    """The first (lowest) shape that holds a clip, or None."""
    return next((i for i, shape in enumerate(shapes) if frames <= shape.frames and tokens <= shape.tokens), None)


def fill(frames: Sequence[int], heights: Sequence[int]) -> float:
    """Useful frames / stored frames when every clip is padded to the lowest height that holds it."""
    held = np.asarray(heights)[np.searchsorted(heights, frames)]
    return float(np.sum(frames) / np.sum(held))
