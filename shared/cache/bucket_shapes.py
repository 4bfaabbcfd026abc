"""Choice of the buckets' shapes from the lengths of the corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

MAX_TOKENS, MAX_FRAMES = 2**16, 2**20
"""Limits of one record, so that a hostile cache cannot ask for all memory."""
STEP = 8
"""Padded lengths are multiples of 8, which suits tensor cores and vector units."""
_USUAL_BUCKETS, _CLIPS_PER_BUCKET = 4, 20
"""Of `shapes.buckets: auto`: compiling a shape takes half a minute, more than the padding that it saves on 20 clips."""


@dataclass(frozen=True, kw_only=True)
class BucketShape:
    """L tokens and T frames to which a bucket's records are padded."""

    tokens: Annotated[int, Field(gt=0, le=MAX_TOKENS)]
    frames: Annotated[int, Field(gt=0, le=MAX_FRAMES)]


Lengths = Sequence[int] | np.ndarray
"""One length per clip."""


def round_up(length: int) -> int:
    """Round up to a multiple of `STEP`, never to 0."""
    return max(STEP, -(-length // STEP) * STEP)


def best_padded_lengths(frames: Lengths, buckets: int) -> list[int]:
    """Return at most `buckets` padded lengths that hold all clips in the fewest stored frames (dynamic programming).

    frames: the clips' lengths. The last padded length covers the longest clip; fewer distinct lengths than `buckets`
    give fewer padded lengths.
    """
    lengths, clips = np.unique(np.asarray(frames), return_counts=True)
    padded_lengths, firsts = np.unique([round_up(length) for length in lengths.tolist()], return_index=True)
    counts = np.add.reduceat(clips, firsts)
    cumulative = np.concatenate([[0], np.cumsum(counts)])  # clips of the first j candidates
    # stored[j]: fewest frames that hold the first j candidates with the buckets used so far
    stored = cumulative * np.concatenate([[0], padded_lengths])
    choices = []
    for _ in range(min(buckets, len(padded_lengths)) - 1):
        chosen, better = np.zeros(len(stored), np.int64), stored.copy()
        for j in range(1, len(stored)):
            costs = stored[:j] + (cumulative[j] - cumulative[:j]) * padded_lengths[j - 1]
            chosen[j] = np.argmin(costs)
            better[j] = costs[chosen[j]]
        choices.append(chosen)
        stored = better
    ends = [len(padded_lengths)]
    for chosen in reversed(choices):
        ends.append(int(chosen[ends[-1]]))
    return [int(padded_lengths[end - 1]) for end in reversed(ends) if end > 0]


def choose_shapes(tokens: Lengths, frames: Lengths, buckets: int | Literal["auto"]) -> list[BucketShape]:
    """Return the shapes for clips: the best padded lengths, and the longest text of each rounded up.

    buckets: at most so many; `auto` for as many as compiling them is worth.
    """
    most = min(_USUAL_BUCKETS, max(1, len(frames) // _CLIPS_PER_BUCKET)) if buckets == "auto" else buckets
    padded_lengths = best_padded_lengths(frames, most)
    longest = np.zeros(len(padded_lengths), np.int64)
    np.maximum.at(longest, np.searchsorted(padded_lengths, frames), tokens)
    return [
        BucketShape(tokens=round_up(int(text_length)), frames=length)
        for text_length, length in zip(longest, padded_lengths, strict=True)
    ]


def fitting_buckets(shapes: Sequence[BucketShape], tokens: Lengths, frames: Lengths) -> np.ndarray:
    """Return the position of the first (smallest) shape that holds each clip, -1 for none: int16[N]."""
    tokens, frames = np.asarray(tokens), np.asarray(frames)
    buckets = np.full(len(frames), -1, np.int16)
    for bucket, shape in reversed([*enumerate(shapes)]):
        buckets[(frames <= shape.frames) & (tokens <= shape.tokens)] = bucket
    return buckets


def fill(frames: Lengths, padded_lengths: Sequence[int]) -> float:
    """Return useful / stored frames if every clip is padded to the shortest padded length that holds it."""
    held = np.asarray(padded_lengths)[np.searchsorted(padded_lengths, frames)]
    return float(np.sum(frames) / np.sum(held))
