"""The parts of README.md and docs/experiments.md that are generated from figures, between their marks."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reporting.report import section_lines, table_lines
from reporting.summary import summarise

Figures = Mapping[str, Any]
DOCUMENTS = ("README.md", "docs/experiments.md")
SPEED = (
    "step: locked against", "input pipeline alone against from_generator", "features: the whole cache against librosa"
)
"""Beginnings of the rows of all ratios that the README repeats."""


def stored_figures(results: Path) -> dict[str, Any]:
    """The figures of `bench.py`, and beside them those of `other_voices.py --out benchmarks/voices.json`."""
    figures: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    return figures | {"voices": json.loads(results.with_name("voices.json").read_text(encoding="utf-8"))}


def with_parts(document: str, figures: Figures) -> str:
    """The document with every marked part regenerated, if its figures exist."""
    for name, write in PARTS.items():
        before, begin, rest = document.partition(f"<!-- {name}: begin -->\n")
        _, end, after = rest.partition(f"<!-- {name}: end -->")
        if begin and end and (lines := write(figures)):
            document = "".join([before, begin, *(f"{line}\n" for line in lines), end, after])
    return document


def bench_lines(figures: Figures) -> list[str]:
    """The table of all ratios, below a line that describes the machine."""
    quick = "; a quick run: little of everything, indicative only" if figures["quick"] else ""
    described = figures["machine"]
    head = f"{described['processor']}, {described['cores']} cores, Python {described['python']}{quick}."
    return [head, "", *table_lines(summarise(figures))]


def speed_lines(figures: Figures) -> list[str]:
    """Some of the ratios in words."""
    rows = [row for row in summarise(dict(figures)) if str(row["what"]).startswith(SPEED)]
    return [f"- {row['what']}: **{row['ratio']}** ({row['measured'].partition(';')[0]})" for row in rows]


def training_lines(training: Figures) -> list[str]:
    """Every section of the training benchmark, with all figures."""
    lines = [line for name, section in training["sections"].items() for line in section_lines(name, section)]
    return lines[:-1]


def precompute_lines(precompute: Figures) -> list[str]:
    """Stage 1 compared with the others, median of the rounds."""
    kept = ("seconds", "clips_per_second", "times_lockstep", "cpu_seconds", "mib_written")
    rows = [{"what": name} | {key: row[key] for key in kept} for name, row in precompute["contestants"].items()]
    head = f"{precompute['clips']:,} clips, {precompute['workers']} processes, median of {precompute['rounds']} rounds:"
    return [head, "", *table_lines(rows)]


def rebuild_lines(rebuild: Figures) -> list[str]:
    """A whole corpus: from scratch, again, one recording changed."""
    rows = [
        {"build": name, "seconds": rebuild["seconds"][name], "shards written": summary["written"],
         "shards kept": summary["kept"], "memory at most": f"{summary['mib']} MiB"}
        for name, summary in rebuild["builds"].items()
    ]
    verify, built = rebuild["seconds"]["verify"], next(iter(rebuild["builds"].values()))
    head = (
        f"{rebuild['clips']:,} clips, {rebuild['hours']} h, `--config {rebuild['config']}`: "
        f"{built['size']}, padding efficiency {built['fill']:.1%}"
    )
    return [head, "", *table_lines(rows), "", f"`xtts-precompute verify` of that cache: {verify} s."]


def _of(name: str, write: Callable[[Figures], list[str]]) -> Callable[[Figures], list[str]]:
    return lambda figures: write(figures[name]) if name in figures else []


PARTS: dict[str, Callable[[Figures], list[str]]] = {
    "voices": _of("voices", lambda voices: table_lines(voices["table"])), "speed": speed_lines, "bench": bench_lines,
    "precompute": _of("precompute", precompute_lines), "rebuild": _of("rebuild", rebuild_lines),
    "training": _of("training", training_lines),
}
"""Functions by the name in the marks."""
