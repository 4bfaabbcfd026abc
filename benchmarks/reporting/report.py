"""What all benchmarks report alike: the machine, tables in Markdown, figures as JSON."""

import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Row = Mapping[str, object]
Section = Mapping[str, object]
"""`title`, figures (ratios first), `table` rows with the same keys, and data for pictures."""


def machine(packages: Iterable[str]) -> dict[str, object]:
    """The machine and versions that the figures were measured on."""
    versions, python = {package: version(package) for package in packages}, platform.python_version()
    return {"processor": processor(), "cores": os.cpu_count(), "python": python, "versions": versions}


def version(package: str) -> str | None:
    """Version of a package without importing it, None if not installed."""
    return next((found.version for found in importlib.metadata.distributions(name=package)), None)


def processor() -> str:
    """Name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def report(lines: Iterable[str], figures: Mapping[str, object], out: Path | None) -> None:
    """Print a benchmark's page, and write its figures to a file where one is given."""
    print("\n".join(lines))
    if out:
        write_json(out, figures)


def write_json(path: Path, figures: Mapping[str, object]) -> None:
    """Write the figures to a file."""
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def section_lines(name: str, section: Section) -> list[str]:
    """One section in Markdown: its figures, one per line, then its table."""
    figures = [(key, value) for key, value in section.items() if key not in ("title", "table", "seconds_by_step")]
    rows = section.get("table", [])
    assert isinstance(rows, list)
    lines = [f"### {name}: {section['title']}", "", *(f"- {_spaced(key)}: {_shown(value)}" for key, value in figures)]
    return [*lines, "", *table_lines(rows), ""]


def table_lines(rows: Sequence[Row]) -> list[str]:
    """Rows with the same keys as a Markdown table; numbers are right-aligned."""
    if not rows:
        return []
    rules = ["---" if isinstance(value, str) else "---:" for value in rows[0].values()]
    lines = [f"| {' | '.join(map(_spaced, rows[0]))} |", f"|{'|'.join(rules)}|"]
    return lines + [f"| {' | '.join(map(_shown, row.values()))} |" for row in rows]


def _spaced(key: str) -> str:
    return key.replace("_", " ")


def _shown(value: object) -> str:
    """Four significant digits, with thousands separators."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
