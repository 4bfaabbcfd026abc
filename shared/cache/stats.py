"""Figures about a cache, from its index alone."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xtts.shared.cache.bucket_shapes import best_padded_lengths, padding_efficiency
from xtts.shared.cache.clip_index import KEPT, UNKNOWN, IndexRow, kept_rows, readable_index
from xtts.shared.text.letter_counts import LetterCounts, count_letters

if TYPE_CHECKING:
    import pyarrow as pa

PERCENTILES = (50, 90, 95, 99, 99.9, 100)
PERCENTILE_NAMES = ("50%", "90%", "95%", "99%", "99.9%", "max")
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


def letters_of(rows: Iterable[IndexRow], language: str) -> list[LetterCounts]:
    """The letters of a corpus, language by language; `language` is that of clips that do not name theirs."""
    known = ((row.clip, row.left_out) for row in rows if row.token_length != UNKNOWN)
    return count_letters(((clip.id, clip.text, clip.language, left_out) for clip, left_out in known), language)


def read_lengths(index: Path) -> "pa.Table":
    """A table of the columns of an index that `corpus_stats` needs, of all clips; a `LockstepError` as `read_index`."""
    with readable_index(index) as file:
        return file.read(columns=["status", "reason", "token_length", "mel_length", "seconds"])


def corpus_stats(lengths: "pa.Table") -> CorpusStats:
    """Percentiles and bucket plans of the kept clips of a table of `read_lengths`."""
    import pyarrow.compute as pc

    kept = lengths.filter(pc.equal(lengths["status"], KEPT))
    tokens, frames, seconds = (kept[name].to_numpy() for name in ("token_length", "mel_length", "seconds"))
    padded_lengths = {n: best_padded_lengths(frames, n) for n in BUCKET_COUNTS}
    return CorpusStats(
        clips=len(frames),
        hours=math.fsum(seconds) / 3600,
        rejected=dict(Counter(filter(None, lengths["reason"].to_pylist())).most_common()),
        percentiles={"tokens": _percentiles(tokens), "frames": _percentiles(frames), "seconds": _percentiles(seconds)},
        padding_efficiency={n: padding_efficiency(frames, padded_lengths[n]) for n in BUCKET_COUNTS},
        padded_lengths=padded_lengths,
    )


@dataclass(frozen=True, kw_only=True)
class CorpusLine:
    """What a cache holds of one corpus."""

    name: str
    """Empty for a corpus without a name."""
    clips: int
    hours: float
    """Of the kept clips."""
    rejected: int
    weight: float
    """How often training draws its clips; 1 is once an epoch."""


def corpus_lines(rows: Iterable[IndexRow], weights: Mapping[str, float]) -> list[CorpusLine]:
    """The corpora by name; none for a cache of a single corpus without a name."""
    members: dict[str, list[IndexRow]] = defaultdict(list)
    for row in rows:
        members[row.clip.corpus].append(row)
    if members.keys() <= {""}:
        return []
    lines = []
    for name, own in sorted(members.items()):
        kept = kept_rows(own)
        hours, weight = sum(row.seconds for row in kept) / 3600, weights.get(name, 1.0)
        line = CorpusLine(name=name, clips=len(kept), hours=hours, rejected=len(own) - len(kept), weight=weight)
        lines.append(line)
    return lines


def _percentiles(values: np.ndarray) -> list[float]:
    # A value that occurs, and not one between two: lengths are counts.
    return [float(value) for value in np.percentile(np.asarray(values, np.float64), PERCENTILES, method="higher")]
