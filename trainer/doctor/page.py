"""The report as one page on a terminal, and as JSON."""

import json

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from xtts.trainer.doctor.finding import Finding, Report, Section

_LONGEST_NAME = 48


def print_report(report: Report, console: Console) -> None:
    """Sections with their marks, then the advice."""
    for section in report.sections:
        _print_section(section, console)
    findings = report.findings
    if not findings:
        console.print("[green]✓[/green] [bold]advice[/bold]  none: nothing found that would slow the training down")
        return
    console.print(f"[yellow]![/yellow] [bold]advice[/bold]  {len(findings)} to act on")
    for number, finding in enumerate(findings, 1):
        console.print(Padding(_advice(number, finding), (0, 0, 0, 2), expand=False))


def print_json(report: Report) -> None:
    """The report as JSON on standard output."""
    print(json.dumps(report.as_json(), indent=1, ensure_ascii=False))


def _print_section(section: Section, console: Console) -> None:
    mark = "[green]✓[/green]" if section.healthy else "[yellow]![/yellow]"
    console.print(f"{mark} [bold]{section.name}[/bold]")
    grid = _grid()
    for fact in section.facts:
        grid.add_row(escape(fact.name), escape(fact.text))
    for finding in section.findings:
        grid.add_row("[yellow]! found[/yellow]", escape(finding.what))
    console.print(Padding(grid, (0, 0, 0, 2), expand=False))


def _grid() -> Table:
    """A grid of names and texts."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=18, max_width=_LONGEST_NAME, overflow="ellipsis")
    grid.add_column(overflow="fold")
    return grid


def _advice(number: int, finding: Finding) -> Table:
    grid = _grid()
    grid.add_row(f"{number}. {finding.section}", f"[bold]{escape(finding.what)}[/bold]")
    rows = (("cause", finding.cause), ("do", finding.remedy), ("gain", finding.gain), ("help", finding.help))
    for name, text in rows:
        if text:
            grid.add_row(f"   {name}", escape(text))
    return grid
