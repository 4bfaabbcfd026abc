"""What the checks have found: facts and problems, as a page and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

HELP = "docs/troubleshooting.md"
"""The document with a section for every problem, by its name."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One measurement or observation."""

    name: str
    value: object
    """Value for JSON: SI units without prefix (seconds, bytes), shares from 0 to 1."""
    text: str
    """Text for the page."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A loss of speed, and its fix."""

    name: str
    """The anchor of its section in `HELP`."""
    what: str
    cause: str
    remedy: str
    gain: str = ""
    """Expected benefit, from the measured numbers."""

    @property
    def help(self) -> str:
        """Link to the explanation."""
        return f"{HELP}#{self.name}"


Findings = Iterable[Fact | Problem]
"""Findings of a check, in order."""


def problems_of(findings: Findings) -> list[Problem]:
    """Return what there is to act on."""
    return [finding for finding in findings if isinstance(finding, Problem)]


def json_page(findings: Sequence[Fact | Problem]) -> dict[str, object]:
    """Return the page for programs."""
    facts = {finding.name: finding.value for finding in findings if isinstance(finding, Fact)}
    problems = [{**asdict(problem), "help": problem.help} for problem in problems_of(findings)]
    return {"healthy": not problems, "facts": facts, "problems": problems}


def print_findings(findings: Sequence[Fact | Problem], console: Console) -> None:
    """Print the facts, then the problems."""
    grid, problems = Table.grid(padding=(0, 2)), problems_of(findings)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    rows = [(finding.name, finding.text) for finding in findings if isinstance(finding, Fact)]
    for number, each in enumerate(problems, 1):
        rows += [(f"{number}. problem", each.what), ("cause", each.cause), ("do", each.remedy), ("gain", each.gain)]
        rows.append(("help", each.help))
    for name, text in rows:
        if text:
            grid.add_row(name, escape(text))
    console.print(grid)
    if not problems:
        console.print("[green]✓[/green] nothing slows the training down")
