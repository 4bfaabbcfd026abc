"""Seeded faults, each found and named by the section that checks for it; none without a fault."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from xtts.trainer.doctor import checks
from xtts.trainer.doctor import environment as environment_module
from xtts.trainer.doctor.environment import environment
from xtts.trainer.doctor.results import HELP, Fact, Problem
from xtts.trainer.doctor.speed import StepTimes, input_wait, loading
from xtts.trainer.loop.chunk import CallResult


def step_times(waiting):
    return StepTimes(
        compile_seconds=1.0,
        steps=CallResult(None, np.array([[0.0, waiting, 0.1 - waiting]] * 8), np.zeros(8, np.int32), None, wall=0.8),
    )


def test_steps_that_wait_for_their_batches(only, problems):
    problem = only(input_wait(step_times(0.05)))
    assert problem.what == "steps wait 50% of their time for a batch"
    assert problem.gain == "2.00 times the steps a second"
    assert not problems(input_wait(step_times(0.01)))


def test_a_gpu_that_tensorflow_does_not_see(monkeypatch, only, problems):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    monkeypatch.setattr(environment_module, "driver", lambda: card)
    problem = only(environment())
    assert problem.what == "TensorFlow sees no GPU, although H200 is present with driver 570.1"
    monkeypatch.setattr(environment_module, "driver", lambda: None)
    assert not problems(environment())


def test_where_xla_does_not_compile_the_rest_is_examined(workload, monkeypatch):
    broken = Problem(name="xla-fails", what="XLA does not compile on this machine: no ptxas", cause="")
    fact = Fact(name="xla", value={"works": False, "seconds": 0.1}, text="fails: no ptxas")
    monkeypatch.setattr(checks, "build_loops", lambda *_: workload.loops)
    monkeypatch.setattr(environment_module, "xla", lambda: [fact, broken])
    monkeypatch.setattr(checks, "run_steps", lambda *_: pytest.fail("a step was compiled"))
    monkeypatch.setattr(checks, "memory", lambda *_, **__: pytest.fail("a step was compiled"))
    report = checks.run_checks(workload.setup, count=4, progress=lambda _: None)
    assert [problem.name for _, problem in report.problems] == ["xla-fails", "padding"]  # of one shape
    facts = {name: {fact.name: fact for fact in section} for name, (section, _) in report.items()}
    assert facts["steps"]["not run"].text == "XLA does not compile on this machine"
    assert facts["data"]["load time"].value["mean"] > 0


def load(*seconds):
    return 0.0, np.array(seconds)


def test_loading_that_is_slower_than_the_steps(only, problems):
    times = load(0.55, 0.55, 0.56)
    what = "loading is slow: mean 553.3 ms, p95 559.0 ms a batch"
    assert only(loading(*times, step_seconds=None)).what == what
    assert only(loading(*times, step_seconds=0.1)).gain == "5.5 times the steps a second: one takes 100.0 ms"
    assert not problems(loading(*times, step_seconds=2.0))
    assert not problems(loading(*load(0.4), step_seconds=None))


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
    assert len(names) > 6
    assert sections == names, f"sections of {HELP} and names of problems differ: {sorted(sections ^ names)}"
