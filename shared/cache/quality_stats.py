"""How good the clips of a cache are, speaker by speaker, and which stand out; from the index alone."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest

import numpy as np

from xtts.shared.audio.decode import source_rate
from xtts.shared.cache.clip_index import IndexRow, kept_rows
from xtts.shared.text.scripts import is_letter

_ENOUGH_CLIPS = 8
"""A speaker of fewer clips is compared with the whole corpus."""
FAR = 3.5
"""Robust deviations (1.4826 times the median distance from the median) beyond which a clip stands out."""
_SAME_TEXTS = 4
"""Clips for each different text beyond which the texts are labels."""
_SLOWEST, _FASTEST = 1.5, 35.0
"""Letters a second: Chinese characters, read slowly with pauses; an alphabet, read fast."""


def letters_in(row: IndexRow) -> int:
    """Letters of the text."""
    return sum(map(is_letter, row.clip.text))


def letters_per_second(row: IndexRow) -> float:
    """Letters of the text / seconds of the clip: the speaking rate, pauses and silence included."""
    return letters_in(row) / row.seconds if row.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One figure of a clip, which is bad where it is high."""

    name: str
    unit: str
    digits: int
    value: Callable[[IndexRow], float | None]
    """None where it was not measured."""
    least_spread: float
    """Smaller deviations than this do not count: in an even corpus nothing stands out by a hair."""
    low_is_bad: bool = False
    """It is bad where it is low, too."""

    def text(self, value: float) -> str:
        """The value with its unit."""
        return f"{self.number(value)} {self.unit}"

    def number(self, value: float) -> str:
        """The value alone."""
        return f"{value:.{self.digits}f}"


def _of_signal(name: str, scale: float = 1.0) -> Callable[[IndexRow], float | None]:
    return lambda row: None if row.quality is None else scale * float(getattr(row.quality, name))


SPEAKING_RATE = Measure(
    name="speaking rate", unit="letters/s", digits=1, least_spread=0.7, low_is_bad=True, value=letters_per_second
)
CLIPPING = Measure(name="clipping", unit="%", digits=3, least_spread=0.01, value=_of_signal("clipped_share", 100.0))
_SILENCE = partial(Measure, unit="s", digits=2, least_spread=0.1)
MEASURES = (
    SPEAKING_RATE,
    Measure(name="loudness", unit="dBFS", digits=1, least_spread=1.0, low_is_bad=True, value=_of_signal("loudness_db")),
    Measure(name="noise floor", unit="dBFS", digits=1, least_spread=2.0, value=_of_signal("noise_floor_db")),
    CLIPPING,
    _SILENCE(name="silence at the start", value=_of_signal("leading_silence")),
    _SILENCE(name="silence at the end", value=_of_signal("trailing_silence")),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SpeakerLine:
    """The clips of one speaker."""

    name: str
    clips: int
    hours: float
    medians: Mapping[str, float]
    """By the name of the measure, without those that were not measured."""
    clipped: int | None
    """Clips with any clipping; None where it was not measured."""
    low_rate: int
    """Clips whose file has a lower sample rate than the mel profile."""
    outliers: int
    """Clips that stand out by any measure."""


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """A clip that is far from its speaker's others by one measure."""

    row: IndexRow
    measure: Measure
    value: float
    median: float
    """Of its speaker, or of the corpus where the speaker has few clips."""
    score: float
    """Robust deviations from the median."""

    @property
    def text(self) -> str:
        """The figure beside the usual one."""
        return f"{self.measure.name} {self.measure.text(self.value)}, median {self.measure.text(self.median)}"


@dataclass(frozen=True, kw_only=True)
class QualityStats:
    """What `stats` and `report` tell of the clips' quality."""

    speakers: list[SpeakerLine]
    """Most clips first."""
    outliers: list[Outlier]
    """Worst first."""
    sample_rate: int
    """Hz of the mel profile."""
    doubts: list[str]
    """Warnings that the texts may not be the transcripts."""
    unmeasured: int
    """Kept clips of which only text and header are known, as in a cache without mels."""

    def by_measure(self) -> list[tuple[Measure, list[Outlier]]]:
        """The outliers of each measure that has any, worst first."""
        found = ((m, [one for one in self.outliers if one.measure is m]) for m in MEASURES)
        return [(measure, outliers) for measure, outliers in found if outliers]

    def worst(self, clips: int) -> list[list[Outlier]]:
        """The clips to hear first, each with all that stands out about it: the worst by each measure in turn."""
        members: dict[str, list[Outlier]] = defaultdict(list)
        for one in self.outliers:
            members[one.row.clip.id].append(one)
        turns = zip_longest(*(outliers for _, outliers in self.by_measure()))
        ids = dict.fromkeys(one.row.clip.id for turn in turns for one in turn if one)
        return [members[clip_id] for clip_id in islice(ids, clips)]


def quality_stats(rows: Iterable[IndexRow], sample_rate: int) -> QualityStats:
    """Figures of the kept clips, beside a mel profile of `sample_rate` Hz."""
    kept = kept_rows(rows)
    members: dict[str, list[IndexRow]] = defaultdict(list)
    for row in kept:
        members[row.clip.speaker].append(row)
    everyone = {measure.name: _usual(_values(kept, measure), measure) for measure in MEASURES}
    outliers = list[Outlier]()
    lines = list[SpeakerLine]()
    for name, own in members.items():
        values = {measure.name: _values(own, measure) for measure in MEASURES}
        found = list[Outlier]()
        for measure in MEASURES:
            column = values[measure.name]
            usual = _usual(column, measure) if len(own) >= _ENOUGH_CLIPS else everyone[measure.name]
            found += _outliers(own, measure, column, usual)
        lines.append(_speaker_line(name, own, values, found, sample_rate))
        outliers += found
    return QualityStats(
        speakers=sorted(lines, key=lambda line: (-line.clips, line.name)),
        outliers=sorted(outliers, key=lambda one: (-one.score, one.row.clip.id, one.measure.name)),
        sample_rate=sample_rate,
        doubts=_doubts(kept),
        unmeasured=sum(row.quality is None for row in kept),
    )


def _doubts(rows: Sequence[IndexRow]) -> list[str]:
    """Warnings: few distinct texts; more or fewer letters per second than people speak."""
    lines, different = list[str](), len({row.clip.text for row in rows})
    if len(rows) >= _ENOUGH_CLIPS and _SAME_TEXTS * different < len(rows):
        lines.append(f"{len(rows):,} clips share {different:,} distinct texts: is this the right column?")
    rate = sum(map(letters_in, rows)) / max(sum(row.seconds for row in rows), 1e-9)
    if rows and not _SLOWEST < rate < _FASTEST:
        lines.append(
            f"{rate:.1f} letters per second, expected {_SLOWEST:g} to {_FASTEST:g}: are these the transcripts?"
        )
    return lines


def _values(rows: Sequence[IndexRow], measure: Measure) -> np.ndarray:
    """float64, NaN where a clip was not measured."""
    found = map(measure.value, rows)
    return np.array([np.nan if value is None else value for value in found], np.float64)


def _usual(values: np.ndarray, measure: Measure) -> tuple[float, float] | None:
    """(median, robust deviation) of what was measured; None where nothing was."""
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    median = float(np.median(known))
    return median, max(1.4826 * float(np.median(np.abs(known - median))), measure.least_spread)


def _outliers(
    rows: Sequence[IndexRow], measure: Measure, values: np.ndarray, usual: tuple[float, float] | None
) -> Iterable[Outlier]:
    if usual is None:
        return
    median, spread = usual
    scores = (values - median) / spread
    bad = np.abs(scores) if measure.low_is_bad else scores
    for number in np.flatnonzero(bad > FAR).tolist():
        yield Outlier(
            row=rows[number], measure=measure, value=float(values[number]), median=median,
            score=float(bad[number]),
        )  # fmt: skip


def _speaker_line(
    name: str, own: Sequence[IndexRow], values: Mapping[str, np.ndarray], outliers: Sequence[Outlier], sample_rate: int
) -> SpeakerLine:
    known = {measure: column[np.isfinite(column)] for measure, column in values.items()}
    clipped = known[CLIPPING.name]
    return SpeakerLine(
        name=name,
        clips=len(own),
        hours=sum(row.seconds for row in own) / 3600,
        medians={measure: float(np.median(column)) for measure, column in known.items() if column.size},
        clipped=int((clipped > 0).sum()) if clipped.size else None,
        low_rate=sum(source_rate(row.notes, sample_rate) < sample_rate for row in own),
        outliers=len({one.row.clip.id for one in outliers}),
    )
