"""The rows of the summary table: each a ratio of two measurements of the same run, with its target."""

from collections.abc import Iterator
from typing import Any

from reporting.report import Row

Figures = dict[str, Any]
Cells = tuple[str, str, str, str]


def summarise(figures: Figures) -> list[Row]:
    """Rows of all benchmarks in `figures`, stage 1 first."""
    readers = {"precompute": _precompute, "rebuild": _rebuild, "training": _training}
    columns = ("what", "ratio", "target", "measured")
    rows = (cells for name, read in readers.items() if name in figures for cells in read(figures[name]))
    return [dict(zip(columns, cells, strict=True)) for cells in rows]


def _precompute(found: Figures) -> Iterator[Cells]:
    contestants = found["contestants"]
    ours, floor = (contestants[name]["clips_per_second"] for name in ("lockstep", "floor"))
    for name, row in contestants.items():
        if name not in ("lockstep", "floor"):
            target = "2x" if name == found["by_wall"].get("fastest_other") else ""
            rates = f"{ours:,.0f} and {row['clips_per_second']:,.0f} clips/s"
            yield f"features: the whole cache against {name} alone", f"{row['times_lockstep']:.2f}x", target, rates
    what = "features: share of the floor (bare decode, FFT, filterbank, write)"
    yield what, f"{100 * found['by_wall']['share_of_floor']:.0f}%", "70%", f"{ours:,.0f} and {floor:,.0f} clips/s"


def _rebuild(found: Figures) -> Iterator[Cells]:
    (fresh, first), *later = ((name, found["seconds"][name]) for name in found["builds"])
    for name, seconds in later:
        what = f"features of {found['clips']:,} clips: {name}, against {fresh}"
        yield what, f"{first / seconds:.0f}x", "", f"{seconds:.1f} and {first:.1f} s"


def _training(found: Figures) -> Iterator[Cells]:
    readers = {"a": _dynamic, "b": _pipelines, "c": _wait, "d": _shapes}
    for name, section in found["sections"].items():
        yield from readers[name](section)


def _dynamic(section: Figures) -> Iterator[Cells]:
    slow, fast = section["table"][:2]
    what = f"step: locked against compiled for every new shape, {slow['batches']} batches of {slow['traces']} shapes"
    measured = f"{fast['mean_seconds']:.3f} and {slow['mean_seconds']:.1f} s a step"
    yield what, f"{section['times_faster']:.0f}x", f"{section['target']}x", measured


def _pipelines(section: Figures) -> Iterator[Cells]:
    ours, *others = section["table"]
    for row in others:
        rates = " and ".join(f"{one['examples_per_second']:,.0f}" for one in (ours, row))
        spent = " and ".join(f"{one['cpu_microseconds_an_example']:.0f}" for one in (ours, row))
        target = "6x" if row["pipeline"] == "tf.numpy_function" else ""
        measured = f"{rates} clips/s; {spent} us of processor time a clip"
        ratio = f"{row['lockstep_is_times_faster']:.1f}x"
        yield f"input pipeline alone against {row['pipeline']}", ratio, target, measured


def _wait(section: Figures) -> Iterator[Cells]:
    share = f"{100 * section['input_wait_share']:.2f}%"
    yield "input wait, share of a training run", share, f"below {section['target']:.0%}", ""


def _shapes(section: Figures) -> Iterator[Cells]:
    one, *_, most = section["table"]
    rates = f"{most['useful_frames_per_second']:,.0f} and {one['useful_frames_per_second']:,.0f} frames/s"
    what = f"useful frames/s: {most['shapes']} shapes against one, lengths of LJSpeech"
    target = f"{section['target_at_8_shapes']}x" if most["shapes"] == 8 else ""  # what fewer shapes cannot reach
    yield what, f"{most['times_one_shape']:.2f}x", target, rates
