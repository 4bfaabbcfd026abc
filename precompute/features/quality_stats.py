"""Quality of a cache's clips, speaker by speaker, and the clips that stand out; from the index alone."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest
from typing import Literal

import numpy as np

from xtts.shared.audio.decode import source_rate
from xtts.shared.cache.clip_index import IndexRow, kept_rows
from xtts.shared.text.scripts import is_letter

_ENOUGH_CLIPS = 8
"""A speaker with fewer clips is compared with all clips."""
OUTLIER_SCORE = 3.5
"""A clip stands out by this many robust deviations (1.4826 times the median distance from the median)."""
_SAME_TEXTS = 4
"""Clips per distinct text above which the texts look like labels."""
_SLOWEST, _FASTEST = 1.5, 35.0
"""Letters per second: Chinese characters read slowly with pauses; an alphabet read fast."""


def letters_in(row: IndexRow) -> int:
    """Count the letters of a clip's text."""
    return sum(map(is_letter, row.clip.text))


def letters_per_second(row: IndexRow) -> float:
    """Return the speaking rate, pauses and silence included."""
    return letters_in(row) / row.seconds if row.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure of a clip."""

    name: str
    unit: str
    digits: int
    value: Callable[[IndexRow], float | None]
    """None if not measured."""
    least_spread: float
    """Smallest deviation to compare with, so that nothing stands out by a hair in a uniform corpus."""
    bad: Literal["high", "low", "both"] = "high"

    def text(self, value: float) -> str:
        """Format a value with its unit."""
        return f"{self.number(value)} {self.unit}"

    def number(self, value: float) -> str:
        """Format a value without its unit."""
        return f"{value:.{self.digits}f}"


def _signal(name: str, scale: float = 1.0) -> Callable[[IndexRow], float | None]:
    return lambda row: None if row.quality is None else scale * float(getattr(row.quality, name))


SPEAKING_RATE = Measure(
    name="speaking rate", unit="letters/s", digits=1, least_spread=0.7, bad="both",
    value=lambda row: letters_per_second(row) if row.clip.text else None,
)
CLIPPING = Measure(name="clipping", unit="%", digits=3, least_spread=0.01, value=_signal("clipped_share", 100.0))
_SILENCE = partial(Measure, unit="s", digits=2, least_spread=0.1)
MEASURES = (
    SPEAKING_RATE,
    Measure(name="loudness", unit="dBFS", digits=1, least_spread=1.0, bad="both", value=_signal("loudness_db")),
    Measure(name="noise floor", unit="dBFS", digits=1, least_spread=2.0, value=_signal("noise_floor_db")),
    CLIPPING,
    _SILENCE(name="silence at the start", value=_signal("leading_silence")),
    _SILENCE(name="silence at the end", value=_signal("trailing_silence")),
    Measure(name="band", unit="kHz", digits=1, least_spread=0.5, bad="low", value=_signal("band_hz", 1e-3)),
)


@dataclass(frozen=True, kw_only=True)
class SpeakerLine:
    """Statistics of one speaker."""

    name: str
    clips: int
    hours: float
    medians: Mapping[str, float]
    """Medians by name of the measure; measures without values are omitted."""
    clipped: int | None
    """Clips with any clipping; None if not measured."""
    low_rate: int
    """Clips whose file's sample rate is below that of the mel profile."""
    outliers: int
    """Clips that stand out by any measure."""


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """A clip that is far from its speaker's others by a measure."""

    row: IndexRow
    measure: Measure
    value: float
    median: float
    """Median of its speaker, or of all clips if the speaker has few."""
    score: float
    """Robust deviations from the median."""

    @property
    def text(self) -> str:
        """The clip's value and the median."""
        return f"{self.measure.name} {self.measure.text(self.value)}, median {self.measure.text(self.median)}"


@dataclass(frozen=True, kw_only=True)
class QualityStats:
    """Quality of the clips, as `report` shows it."""

    speakers: list[SpeakerLine]
    """Speakers, those with most clips first."""
    outliers: list[Outlier]
    """Outliers, the worst first."""
    sample_rate: int
    """Hz of the mel profile."""
    doubts: list[str]
    """Warnings that the texts may not be the transcripts."""

    @property
    def shown(self) -> list[Measure]:
        """The measures in tables of speakers: those with any median, but for clipping, whose clips are counted."""
        with_median = {name for line in self.speakers for name in line.medians}
        return [measure for measure in MEASURES if measure.name in with_median and measure is not CLIPPING]

    def by_measure(self) -> list[tuple[Measure, list[Outlier]]]:
        """Return the outliers of each measure that has any, worst first."""
        by_measure = ((m, [outlier for outlier in self.outliers if outlier.measure is m]) for m in MEASURES)
        return [(measure, outliers) for measure, outliers in by_measure if outliers]

    def worst(self, clips: int) -> list[list[Outlier]]:
        """Return the outliers of the clips to listen to first, clip by clip: the worst by each measure in turn."""
        by_clip: dict[str, list[Outlier]] = defaultdict(list)
        for outlier in self.outliers:
            by_clip[outlier.row.clip.id].append(outlier)
        turns = zip_longest(*(outliers for _, outliers in self.by_measure()))
        ids = dict.fromkeys(outlier.row.clip.id for turn in turns for outlier in turn if outlier)
        return [by_clip[clip_id] for clip_id in islice(ids, clips)]


def quality_stats(rows: Iterable[IndexRow], sample_rate: int) -> QualityStats:
    """Compute the quality of the kept clips for a mel profile of `sample_rate` Hz."""
    kept = kept_rows(rows)
    by_speaker: dict[str, list[IndexRow]] = defaultdict(list)
    for row in kept:
        by_speaker[row.clip.speaker].append(row)
    overall = {measure.name: _median_and_spread(_values(kept, measure), measure) for measure in MEASURES}
    outliers = list[Outlier]()
    lines = list[SpeakerLine]()
    for name, own in by_speaker.items():
        values = {measure.name: _values(own, measure) for measure in MEASURES}
        own_outliers = list[Outlier]()
        for measure in MEASURES:
            column = values[measure.name]
            normal = _median_and_spread(column, measure) if len(own) >= _ENOUGH_CLIPS else overall[measure.name]
            own_outliers += _outliers(own, measure, column, normal)
        lines.append(_speaker_line(name, own, values, own_outliers, sample_rate))
        outliers += own_outliers
    return QualityStats(
        speakers=sorted(lines, key=lambda line: (-line.clips, line.name)), doubts=_doubts(kept),
        outliers=sorted(outliers, key=lambda outlier: (-outlier.score, outlier.row.clip.id, outlier.measure.name)),
        sample_rate=sample_rate,
    )


def _doubts(rows: Sequence[IndexRow]) -> list[str]:
    """Return warnings: few distinct texts, an unlikely speaking rate; none for crops."""
    if not any(row.clip.text for row in rows):
        return []
    lines, distinct = list[str](), len({row.clip.text for row in rows})
    if len(rows) >= _ENOUGH_CLIPS and _SAME_TEXTS * distinct < len(rows):
        lines.append(f"{len(rows):,} clips share {distinct:,} distinct texts: is this the right column?")
    rate = sum(map(letters_in, rows)) / max(sum(row.seconds for row in rows), 1e-9)
    if not _SLOWEST < rate < _FASTEST:
        lines.append(
            f"{rate:.1f} letters per second, expected {_SLOWEST:g} to {_FASTEST:g}: are these the transcripts?"
        )
    return lines


def _values(rows: Sequence[IndexRow], measure: Measure) -> np.ndarray:
    """Return the clips' values, float64[N], NaN if not measured."""
    return np.array([np.nan if value is None else value for value in map(measure.value, rows)], np.float64)


def _median_and_spread(values: np.ndarray, measure: Measure) -> tuple[float, float] | None:
    """Return (median, robust deviation) of the measured values; None without any."""
    measured = values[np.isfinite(values)]
    if not measured.size:
        return None
    median = float(np.median(measured))
    return median, max(1.4826 * float(np.median(np.abs(measured - median))), measure.least_spread)


def _outliers(
    rows: Sequence[IndexRow], measure: Measure, values: np.ndarray, normal: tuple[float, float] | None
) -> Iterable[Outlier]:
    if normal is None:
        return
    median, spread = normal
    deviations = (values - median) / spread
    scores = {"high": deviations, "low": -deviations, "both": np.abs(deviations)}[measure.bad]
    for i in np.flatnonzero(scores > OUTLIER_SCORE).tolist():
        yield Outlier(row=rows[i], measure=measure, value=float(values[i]), median=median, score=float(scores[i]))


def _speaker_line(
    name: str, own: Sequence[IndexRow], values: Mapping[str, np.ndarray], outliers: Sequence[Outlier], sample_rate: int
) -> SpeakerLine:
    measured = {measure: column[np.isfinite(column)] for measure, column in values.items()}
    clipped = measured[CLIPPING.name]
    return SpeakerLine(
        name=name, clips=len(own), hours=sum(row.seconds for row in own) / 3600,
        medians={measure: float(np.median(column)) for measure, column in measured.items() if column.size},
        clipped=int((clipped > 0).sum()) if clipped.size else None,
        low_rate=sum(source_rate(row.notes, sample_rate) < sample_rate for row in own),
        outliers=len({outlier.row.clip.id for outlier in outliers}),
    )
