"""Statistics of a cache, from its index alone."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xtts.shared.cache.bucket_shapes import best_padded_lengths, fill
from xtts.shared.cache.clip_index import KEPT, readable_index

PERCENTILES = (50, 90, 95, 99, 99.9, 100)
PERCENTILE_NAMES = ("50%", "90%", "95%", "99%", "99.9%", "max")
BUCKET_COUNTS = (1, 2, 4, 6, 8, 12)


@dataclass(frozen=True, kw_only=True)
class CorpusStats:
    """Statistics that `xtts-precompute stats` prints."""

    clips: int
    hours: float
    rejected: int
    percentiles: dict[str, list[float]]
    """`tokens`, unless all are crops, `frames` and `seconds`, each at `PERCENTILES`."""
    fill: dict[int, float]
    """Useful frames / stored frames at the best padded lengths, by count of buckets."""
    padded_lengths: dict[int, list[int]]
    """Best padded lengths, by count of buckets."""


def corpus_stats(index: Path) -> CorpusStats:
    """Compute the statistics of an index; raises `LockstepError` like `read_index`."""
    import pyarrow.compute as pc

    with readable_index(index) as file:
        lengths = file.read(columns=["status", "token_length", "mel_length", "seconds"])
    kept = lengths.filter(pc.equal(lengths["status"], KEPT))
    tokens, frames, seconds = (kept[name].to_numpy() for name in ("token_length", "mel_length", "seconds"))
    lengths_by_name = {"tokens": tokens, "frames": frames, "seconds": seconds}
    padded_lengths = {n: best_padded_lengths(frames, n) for n in BUCKET_COUNTS}
    return CorpusStats(
        clips=len(frames), hours=math.fsum(seconds) / 3600, padded_lengths=padded_lengths,
        rejected=len(lengths) - len(kept),
        percentiles={name: _percentiles(values) for name, values in lengths_by_name.items() if values.any()},
        fill={n: fill(frames, padded_lengths[n]) for n in BUCKET_COUNTS},
    )


def _percentiles(values: np.ndarray) -> list[float]:
    # "higher": lengths are counts, so a percentile must be a length that occurs.
    return [float(value) for value in np.percentile(np.asarray(values, np.float64), PERCENTILES, method="higher")]
