"""Statistics of a cache, from its index alone."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xtts.shared.cache.bucket_shapes import best_padded_lengths, fill
from xtts.shared.cache.clip_index import KEPT, readable_index

if TYPE_CHECKING:
    import pyarrow as pa

PERCENTILES = (50, 90, 95, 99, 99.9, 100)
PERCENTILE_NAMES = ("50%", "90%", "95%", "99%", "99.9%", "max")
BUCKET_COUNTS = (1, 2, 4, 6, 8, 12)


@dataclass(frozen=True, kw_only=True)
class CorpusStats:
    """Statistics that `xtts-precompute stats` prints."""

    clips: int
    hours: float
    rejected: dict[str, int]
    percentiles: dict[str, list[float]]
    """`tokens`, unless all are crops, `frames` and `seconds`, each at `PERCENTILES`."""
    fill: dict[int, float]
    """Useful frames / stored frames at the best padded lengths, by count of buckets."""
    padded_lengths: dict[int, list[int]]
    """Best padded lengths, by count of buckets."""


def read_lengths(index: Path) -> "pa.Table":
    """Read the columns of an index that `corpus_stats` needs; raises `LockstepError` like `read_index`."""
    with readable_index(index) as file:
        return file.read(columns=["status", "reason", "token_length", "mel_length", "seconds"])


def corpus_stats(lengths: "pa.Table") -> CorpusStats:
    """Compute the statistics of a table of `read_lengths`."""
    import pyarrow.compute as pc

    kept = lengths.filter(pc.equal(lengths["status"], KEPT))
    tokens, frames, seconds = (kept[name].to_numpy() for name in ("token_length", "mel_length", "seconds"))
    lengths_by_name = {"tokens": tokens, "frames": frames, "seconds": seconds}
    padded_lengths = {n: best_padded_lengths(frames, n) for n in BUCKET_COUNTS}
    return CorpusStats(
        clips=len(frames), hours=math.fsum(seconds) / 3600, padded_lengths=padded_lengths,
        rejected=dict(Counter(filter(None, lengths["reason"].to_pylist())).most_common()),
        percentiles={name: _percentiles(values) for name, values in lengths_by_name.items() if values.any()},
        fill={n: fill(frames, padded_lengths[n]) for n in BUCKET_COUNTS},
    )


def _percentiles(values: np.ndarray) -> list[float]:
    # "higher": lengths are counts, so a percentile must be a length that occurs.
    return [float(value) for value in np.percentile(np.asarray(values, np.float64), PERCENTILES, method="higher")]
