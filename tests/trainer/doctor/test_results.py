"""Every problem has a name, a place on the page and in the JSON, and a section in docs/troubleshooting.md."""

import ast
import re
from pathlib import Path

from rich.console import Console

from xtts.trainer.doctor.results import HELP, Problem, Report, print_report

ROOT = Path(__file__).parents[3]


def problem_names():
    """The constant `name=` of every `Problem(...)` in the doctor's code."""
    for path in sorted((ROOT / "trainer" / "doctor").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                yield next(ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg == "name")


def test_every_problem_has_a_section_in_the_troubleshooting_page():
    names = set(problem_names())
    page = (ROOT / HELP).read_text(encoding="utf-8")
    _, _, of_the_doctor = page.partition("\n## What xtts-doctor finds\n")
    sections = {title.lower().replace(" ", "-") for title in re.findall(r"^### (.+)$", of_the_doctor, re.MULTILINE)}
    assert len(names) > 10
    assert sections == names, f"sections of {HELP} and names of problems differ: {sorted(sections ^ names)}"


def test_page_and_json_say_where_a_problem_is_explained(capsys):
    problem = Problem(name="slow-storage", what="slow to read", cause="the disk", fix="copy it")
    report = Report()
    report.add("environment", [problem])
    print_report(report, Console(width=120, emoji=False))
    assert "docs/troubleshooting.md#slow-storage" in capsys.readouterr().out
    (advice,) = report.as_json()["advice"]
    assert (advice["section"], advice["name"]) == ("environment", "slow-storage")
    assert advice["help"] == "docs/troubleshooting.md#slow-storage"
