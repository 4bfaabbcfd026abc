"""Figures about a cache, from its index alone."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xtts.shared.cache.bucket_shapes import best_padded_lengths, padding_efficiency
from xtts.shared.cache.clip_index import Clip, IndexRow, Kept, Rejected, TokenCount
from xtts.shared.text.letter_counts import LetterCounts, count_letters

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


class _Row(Protocol):
    """A row of the ledger, finished or not."""

    @property
    def clip(self) -> Clip: ...
    @property
    def tokens(self) -> TokenCount | None: ...


def letters_of(rows: Iterable[_Row], language: str) -> list[LetterCounts]:
    """The letters of a corpus, language by language; `language` is that of clips that do not name theirs."""
    known = ((row.clip, row.tokens) for row in rows if row.tokens is not None)
    return count_letters(((clip.id, clip.text, clip.language, tokens.left_out) for clip, tokens in known), language)


def corpus_stats(rows: Sequence[IndexRow]) -> CorpusStats:
    """Percentiles and bucket plans of the kept clips."""
    kept = [row for row in rows if isinstance(row, Kept)]
    frames = [row.audio.mel_length for row in kept]
    seconds = [row.audio.seconds for row in kept]
    tokens = [row.tokens.token_length for row in kept]
    padded_lengths = {n: best_padded_lengths(frames, n) for n in BUCKET_COUNTS}
    return CorpusStats(
        clips=len(kept),
        hours=sum(seconds) / 3600,
        rejected=dict(Counter(row.rejection.reason for row in rows if isinstance(row, Rejected)).most_common()),
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
        kept = [row for row in own if isinstance(row, Kept)]
        hours, weight = sum(row.audio.seconds for row in kept) / 3600, weights.get(name, 1.0)
        line = CorpusLine(name=name, clips=len(kept), hours=hours, rejected=len(own) - len(kept), weight=weight)
        lines.append(line)
    return lines


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
    measured = [(row.tokens, row.audio) for row in rows if row.tokens and row.audio and row.tokens.token_length]
    tokens = [text.token_length for text, _ in measured]
    frames = [audio.mel_length for _, audio in measured]
    seconds = [audio.seconds for _, audio in measured]
    asked = {"max_text_length": (max_text_length, tokens), "max_mel_frames": (max_mel_frames, frames)}
    return {name: _effect(seconds, lengths, limit) for name, (limit, lengths) in asked.items() if limit is not None}


def _effect(seconds: Sequence[float], lengths: Sequence[int], limit: int) -> Cap:
    above = [spoken for spoken, length in zip(seconds, lengths, strict=True) if length > limit]
    longest = max(lengths, default=0)
    return Cap(limit=limit, clips=len(lengths), longest=longest, rejected=len(above), hours=sum(above) / 3600)
