"""Figures about a cache, from its index alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xtts.shared.cache.bucket_shapes import best_padded_lengths, padding_efficiency
from xtts.shared.cache.clip_index import KEPT, IndexRow

PERCENTILES = (50, 90, 95, 99, 99.9, 100)
BUCKET_COUNTS = (1, 2, 4, 6, 8, 12)


@dataclass(frozen=True, kw_only=True)
class CorpusStats:
    """What `xtts-precompute stats` prints."""

    clips: int
    hours: float
    rejected: dict[str, int]
    percentiles: dict[str, list[float]]
    """`tokens`, `frames` and `seconds`, each at `PERCENTILES`."""
    padding_efficiency: dict[int, float]
    """Number of buckets to useful frames / stored frames at the best padded lengths."""
    padded_lengths: dict[int, list[int]]
    """Number of buckets to those padded lengths."""


def corpus_stats(rows: Sequence[IndexRow]) -> CorpusStats:
    """Percentiles and bucket plans of the kept clips."""
    kept = [row for row in rows if row.status == KEPT]
    frames = [row.mel_length or 0 for row in kept]
    seconds = [row.seconds or 0.0 for row in kept]
    tokens = [row.token_length or 0 for row in kept]
    padded_lengths = {n: best_padded_lengths(frames, n) for n in BUCKET_COUNTS}
    return CorpusStats(
        clips=len(kept),
        hours=sum(seconds) / 3600,
        rejected=dict(Counter(row.reason for row in rows if row.reason).most_common()),
        percentiles={"tokens": _percentiles(tokens), "frames": _percentiles(frames), "seconds": _percentiles(seconds)},
        padding_efficiency={n: padding_efficiency(frames, padded_lengths[n]) for n in BUCKET_COUNTS},
        padded_lengths=padded_lengths,
    )


def _percentiles(values: Sequence[float]) -> list[float]:
    # A value that occurs, and not one between two: lengths are counts.
    return [float(value) for value in np.percentile(np.asarray(values, np.float64), PERCENTILES, method="higher")]


@dataclass(frozen=True, kw_only=True)
class Cap:
    """What an upper limit of a length would keep out."""

    limit: int
    clips: int
    """Clips with known lengths."""
    longest: int
    """Length of the longest of them."""
    rejected: int
    """Those above the limit."""
    hours: float
    """Their sound."""

    @property
    def share(self) -> float:
        """Rejected / all clips."""
        return self.rejected / max(self.clips, 1)


def effect_of_caps(
    rows: Sequence[IndexRow], *, max_text_length: int | None, max_mel_frames: int | None
) -> dict[str, Cap]:
    """What the given caps would keep out of the clips with known lengths, by cap."""
    measured = [row for row in rows if row.mel_length is not None and row.token_length]
    tokens = [row.token_length or 0 for row in measured]
    frames = [row.mel_length or 0 for row in measured]
    asked = {"max_text_length": (max_text_length, tokens), "max_mel_frames": (max_mel_frames, frames)}
    return {name: _effect(measured, lengths, limit) for name, (limit, lengths) in asked.items() if limit is not None}


def _effect(rows: Sequence[IndexRow], lengths: Sequence[int], limit: int) -> Cap:
    above = [row.seconds or 0.0 for row, length in zip(rows, lengths, strict=True) if length > limit]
    longest = max(lengths, default=0)
    return Cap(limit=limit, clips=len(rows), longest=longest, rejected=len(above), hours=sum(above) / 3600)
