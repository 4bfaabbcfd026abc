"""Histograms as the numbers that a page draws them with: bars, ticks and marks in a box of fixed size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 420, 130
"""The box of the bars, in units of the drawing."""
_BARS = 42
_TICKS = 5
_LABEL_WIDTH = 34


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A rectangle from the left edge `x`, growing up from the bottom, and what it counts."""

    x: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A place on the horizontal axis, and what stands there."""

    x: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Counts of one quantity."""

    title: str
    legend: str
    """What the marks are."""
    bars: list[Bar]
    ticks: list[Mark]
    marks: list[Mark]
    """Vertical lines."""
    highest: int
    """Clips in the highest bar."""


def draw_histogram(unit: str, values: Sequence[float], legend: str, marks: Mapping[str, float]) -> Histogram:
    """Place the bars of `values` (at least one, none negative) and lines at `marks`, which `legend` explains."""
    from matplotlib.ticker import MaxNLocator

    whole = all(isinstance(value, int) for value in values)
    ticks = MaxNLocator(nbins=_TICKS, integer=whole).tick_values(0.0, max(*values, *marks.values(), 1e-9))
    top = float(ticks[-1])
    bars = min(_BARS, round(top)) if whole else _BARS  # a bar is never narrower than one of a count
    counts, edges = np.histogram(np.asarray(values, np.float64), bins=bars, range=(0.0, top))
    highest, width = int(counts.max()), WIDTH / bars
    rectangles = [
        Bar(
            x=number * width,
            width=width,
            height=HEIGHT * int(count) / highest,
            text=f"{count:,} clips of {low:.4g} to {high:.4g} {unit}",
        )
        for number, (count, low, high) in enumerate(zip(counts, edges[:-1], edges[1:], strict=True))
        if count
    ]
    return Histogram(
        title=unit,
        legend=legend,
        bars=rectangles,
        ticks=[Mark(x=WIDTH * tick / top, text=f"{tick:g}") for tick in ticks],
        marks=_readable([Mark(x=WIDTH * value / top, text=text) for text, value in marks.items()]),
        highest=highest,
    )


def _readable(marks: list[Mark]) -> list[Mark]:
    """The marks in order, without the texts that would run into the one to their right."""
    ordered = sorted(marks, key=lambda mark: mark.x)
    following = [*(mark.x for mark in ordered[1:]), float("inf")]
    return [
        mark if x - mark.x >= _LABEL_WIDTH else Mark(x=mark.x, text="")
        for mark, x in zip(ordered, following, strict=True)
    ]
