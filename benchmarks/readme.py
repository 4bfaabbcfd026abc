"""The parts of README.md that are written from figures, each between its marks: the same lines a benchmark prints."""

from collections.abc import Callable, Mapping
from typing import Any

from report import table_lines
from summary import summarise

Figures = Mapping[str, Any]


def with_parts(readme: str, figures: Figures) -> str:
    """The README with every part that the figures have made anew."""
    for name, write in PARTS.items():
        before, begin, rest = readme.partition(f"<!-- {name}: begin -->\n")
        _, end, after = rest.partition(f"<!-- {name}: end -->")
        if begin and end and (lines := write(figures)):
            readme = "".join([before, begin, *(f"{line}\n" for line in lines), end, after])
    return readme


def bench_lines(figures: Figures) -> list[str]:
    """The table of every ratio, below a line that tells the machine."""
    described = figures["machine"]
    quick = "; a quick run: little of everything, indicative only" if figures["quick"] else ""
    head = f"{described['processor']}, {described['cores']} cores, Python {described['python']}{quick}."
    return [head, "", *table_lines(summarise(figures))]


def rebuild_lines(rebuild: Figures) -> list[str]:
    """A whole corpus: from nothing, again, one recording changed."""
    rows = [
        {"build": name, "seconds": rebuild["seconds"][name], "shards written": told["written"],
         "shards kept": told["kept"], "memory at most": f"{told['mib']} MiB"}
        for name, told in rebuild["told"].items()
    ]  # fmt: skip
    verify, built = rebuild["seconds"]["verify"], next(iter(rebuild["told"].values()))
    return [
        f"{rebuild['clips']:,} clips, {rebuild['hours']} h, `--config {rebuild['config']}`: "
        f"{built['size']}, fill {built['fill']:.1%}",
        "",
        *table_lines(rows),
        "",
        f"`xtts-precompute verify` of that cache: {verify} s.",
    ]


def speech_lines(speech: Figures) -> list[str]:
    """What held-out sentences sound like, beside vocoded recordings and the nearest wrong sentence."""
    sentences, minutes = speech["sentences"], speech["step_seconds"] / 60
    rows = [
        {
            "": name,
            "MCD-DTW": f"{row['mcd_db']:.2f} dB",
            "relative MCD": f"{row['relative_mcd']:.3f}",
            "duration error": f"{row['duration_error']:.1%}",
            "retrieval@1": f"{row['retrieved']} of {sentences}",
        }
        for name, row in speech["systems"].items()
    ]
    return [
        f"{sentences} held-out sentences; {speech['size']}, {speech['step']:,} steps in {minutes:.1f} minutes:",
        "",
        *table_lines(rows),
    ]


def _of(name: str, write: Callable[[Figures], list[str]]) -> Callable[[Figures], list[str]]:
    return lambda figures: write(figures[name]) if name in figures else []


PARTS: dict[str, Callable[[Figures], list[str]]] = {
    "bench": bench_lines,
    "rebuild": _of("rebuild", rebuild_lines),
    "speech": _of("speech", speech_lines),
}
"""By the name in the marks."""
