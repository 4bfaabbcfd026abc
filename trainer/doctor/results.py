"""Results of the checks: facts and problems, and their report as a page and as JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

HELP = "docs/troubleshooting.md"
"""The document with a section for every problem, by its name."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One measurement or observation."""

    name: str
    value: object
    """Value for JSON: SI units without prefix (seconds, bytes, FLOP/s), shares from 0 to 1."""
    text: str
    """Text for the page."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A loss of speed or clips, and its fix."""

    name: str
    """The anchor of its section in `HELP`."""
    what: str
    cause: str
    setting: str = ""
    """The `section.key` to change; empty if no setting fixes it."""
    value: object = None
    """Value to set it to."""
    fix: str = ""
    """Advice besides the setting, or instead of one."""
    gain: str = ""
    """Expected benefit, from the measured numbers."""

    @property
    def remedy(self) -> str:
        """Advice in one line."""
        change = f"set {self.setting} to {as_yaml(self.value)}" if self.setting else ""
        return "; ".join(filter(None, (change, self.fix)))

    @property
    def help(self) -> str:
        """Link to the explanation."""
        return f"{HELP}#{self.name}"


Findings = Iterable[Fact | Problem]
"""Findings of a check, in order."""


class Report(dict[str, tuple[list[Fact], list[Problem]]]):
    """The page: the facts and problems of each section, in order."""

    def add(self, name: str, *checks: Findings) -> None:
        """Add a section with the findings of its checks."""
        findings = [finding for check in checks for finding in check]
        facts = [finding for finding in findings if isinstance(finding, Fact)]
        self[name] = facts, [finding for finding in findings if isinstance(finding, Problem)]

    @property
    def problems(self) -> list[tuple[str, Problem]]:
        """(name of its section, problem) of everything to act on, in order."""
        return [(name, problem) for name, (_, problems) in self.items() for problem in problems]

    def as_json(self) -> dict[str, object]:
        """The page for programs."""
        sections = {
            name: {"healthy": not problems, "facts": {fact.name: fact.value for fact in facts}}
            for name, (facts, problems) in self.items()
        }
        advice = [
            {"section": name, **asdict(problem), "remedy": problem.remedy, "help": problem.help}
            for name, problem in self.problems
        ]
        return {"healthy": not advice, "sections": sections, "advice": advice}


def as_yaml(value: object) -> str:
    """A setting's value as written in YAML; JSON scalars are valid YAML."""
    return value if isinstance(value, str) else json.dumps(value)


def print_report(report: Report, console: Console) -> None:
    """Print the sections with their marks, then the advice."""
    for section, (facts, problems) in report.items():
        mark = "[yellow]![/yellow]" if problems else "[green]✓[/green]"
        console.print(f"{mark} [bold]{section}[/bold]")
        grid = _grid()
        for fact in facts:
            grid.add_row(escape(fact.name), escape(fact.text))
        for problem in problems:
            grid.add_row("[yellow]! found[/yellow]", escape(problem.what))
        console.print(Padding(grid, (0, 0, 0, 2), expand=False))
    if not report.problems:
        console.print("[green]✓[/green] [bold]advice[/bold]  none: nothing slows the training down")
        return
    console.print(f"[yellow]![/yellow] [bold]advice[/bold]  {len(report.problems)} to act on")
    for number, (name, problem) in enumerate(report.problems, 1):
        console.print(Padding(_advice(f"{number}. {name}", problem), (0, 0, 0, 2), expand=False))


def _grid() -> Table:
    """A grid of names and texts."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=18)
    grid.add_column(overflow="fold")
    return grid


def _advice(title: str, problem: Problem) -> Table:
    grid = _grid()
    grid.add_row(title, f"[bold]{escape(problem.what)}[/bold]")
    rows = (("cause", problem.cause), ("do", problem.remedy), ("gain", problem.gain), ("help", problem.help))
    for name, text in rows:
        if text:
            grid.add_row(f"   {name}", escape(text))
    return grid
