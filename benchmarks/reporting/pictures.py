"""The benchmark's pictures, as SVG: step times before and after, fill by number of shapes, throughput."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from setup.ljspeech_corpus import read_lengths

from xtts.shared.cache.bucket_shapes import best_padded_lengths, padding_efficiency

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, OTHERS = "#1b6ca8", "#b8b8b8"
BUCKET_COUNTS = (1, 2, 4, 6, 8, 12)
_EVERY_LENGTH = 262
"""Clips of ljspeech_lengths.csv."""


def draw(figures: dict[str, Any], folder: Path) -> None:
    """Draw all pictures that `figures` has numbers for."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = figures.get("training", {}).get("sections", {})
    _save(_fill_picture(), folder / "fill.svg")
    if "a" in sections:
        _save(_step_picture(sections["a"]["seconds_by_step"]), folder / "steps.svg")
    bars = _bars(figures.get("precompute"), sections)
    if bars:
        _save(_bar_picture(bars), folder / "throughput.svg")


def curves(lines: dict[str, list[tuple[int, float]]], colors: dict[str, str], label: str, file: Path) -> None:
    """Draw losses over steps, one line per name."""
    figure, (axis,) = _figure(5, 2.6)
    for name, points in lines.items():
        axis.plot(*zip(*points, strict=True), ".-", color=colors[name], label=name, linewidth=1)
    axis.set(xlabel="step", ylabel=label, yscale="log")
    axis.legend(frameon=False)
    _save(figure, file)


def _figure(width: float, height: float, panels: int = 1) -> tuple["Figure", list["Axes"]]:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "lockstep"}
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(width, height), layout="constrained", squeeze=False)
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[0])


def _save(figure: "Figure", file: Path) -> None:
    from matplotlib import pyplot

    figure.savefig(file, metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)


def _step_picture(seconds: dict[str, list[float]]) -> "Figure":
    figure, (axis,) = _figure(7, 2.6)
    colors = {"dynamic": OTHERS, "locked": OURS}
    labels = {"dynamic": "compiled for every new shape", "locked": "locked shapes"}
    for name, values in seconds.items():
        axis.plot(range(1, len(values) + 1), values, ".-", color=colors[name], label=labels[name], linewidth=1)
    axis.set(yscale="log", xlabel="batch", ylabel="step, seconds")
    axis.legend(frameon=False)
    return figure


def _fill_picture() -> "Figure":
    frames = [length for length, _ in read_lengths(_EVERY_LENGTH)]
    fills = [100 * padding_efficiency(frames, best_padded_lengths(frames, count)) for count in BUCKET_COUNTS]
    figure, (axis,) = _figure(4.5, 2.6)
    bars = axis.bar([str(count) for count in BUCKET_COUNTS], fills, color=[OTHERS, *[OURS] * (len(fills) - 1)])
    axis.bar_label(bars, fmt="%.1f%%", fontsize=8)
    axis.set(xlabel="shapes", ylabel="useful / stored frames, %", ylim=(0, 105))
    return figure


def _bars(precompute: dict[str, Any] | None, sections: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Panels by title: contestant to rate."""
    panels = {}
    if precompute:
        rows = precompute["contestants"]
        panels["features, clips/s"] = {name: row["clips_per_second"] for name, row in rows.items()}
    if "c" in sections:
        rows = [row for row in sections["c"]["table"] if not row["pipeline"].startswith("one bucket")]
        panels["input pipeline, clips/s"] = {row["pipeline"]: row["examples_per_second"] for row in rows}
    if "e" in sections:
        panels["training, useful frames/s"] = {
            f"{row['shapes']} shape{'s' * (row['shapes'] > 1)}": row["useful_frames_per_second"]
            for row in sections["e"]["table"]
        }
    return panels


def _bar_picture(panels: dict[str, dict[str, float]]) -> "Figure":
    figure, axes = _figure(3.2 * len(panels), 2.4, len(panels))
    for axis, (title, rates) in zip(axes, panels.items(), strict=True):
        names = list(rates)[::-1]
        ours = [name == "lockstep" or name.endswith("shapes") for name in names]
        bars = axis.barh(names, [rates[name] for name in names], color=[OURS if own else OTHERS for own in ours])
        axis.bar_label(bars, fmt="{:,.0f}", fontsize=8, padding=2)
        axis.set_title(title, fontsize=9, loc="left")
        axis.set_xlim(0, 1.25 * max(rates.values()))
        axis.tick_params(axis="x", labelsize=7)
    return figure
