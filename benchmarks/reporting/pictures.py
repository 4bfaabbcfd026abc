"""The benchmark's pictures, as SVG: step times before and after, fill by number of shapes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from setup.ljspeech_corpus import read_lengths

from xtts.shared.cache.bucket_shapes import best_padded_lengths, fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, OTHERS = "#1b6ca8", "#b8b8b8"
BUCKET_COUNTS = (1, 2, 4, 6, 8, 12)


def draw(figures: dict[str, Any], folder: Path) -> None:
    """Draw all pictures that `figures` has numbers for."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = figures.get("training", {}).get("sections", {})
    _save(_fill_picture(), folder / "fill.svg")
    if "a" in sections:
        _save(_step_picture(sections["a"]["seconds_by_step"]), folder / "steps.svg")


def _figure(width: float) -> tuple["Figure", "Axes"]:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams |= {"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "lockstep"}
    figure = Figure(figsize=(width, 2.6), layout="constrained")
    axis = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def _save(figure: "Figure", file: Path) -> None:
    figure.savefig(file, metadata={"Date": None}, facecolor="white")


def _step_picture(seconds: dict[str, list[float]]) -> "Figure":
    figure, axis = _figure(7)
    styles = {"dynamic": (OTHERS, "compiled for every new shape"), "locked": (OURS, "locked shapes")}
    for (color, label), values in ((styles[name], values) for name, values in seconds.items()):
        axis.plot(range(1, len(values) + 1), values, ".-", color=color, label=label, linewidth=1)
    axis.set(yscale="log", xlabel="batch", ylabel="step, seconds")
    axis.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))  # above the lines, whatever they are
    return figure


def _fill_picture() -> "Figure":
    frames = [length for length, _ in read_lengths()]
    fills = [100 * fill(frames, best_padded_lengths(frames, count)) for count in BUCKET_COUNTS]
    figure, axis = _figure(4.5)
    bars = axis.bar([str(count) for count in BUCKET_COUNTS], fills, color=[OTHERS, *[OURS] * (len(fills) - 1)])
    axis.bar_label(bars, fmt="%.1f%%", fontsize=8)
    axis.set(xlabel="shapes", ylabel="useful / stored frames, %", ylim=(0, 105))
    return figure
