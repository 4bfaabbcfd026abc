"""Seeded faults, each found and named by the section that checks for it; none without a fault."""

import ast
import re
from pathlib import Path

import numpy as np

from xtts.trainer.doctor import environment as environment_module
from xtts.trainer.doctor.checks import step_times
from xtts.trainer.doctor.environment import environment
from xtts.trainer.doctor.results import HELP
from xtts.trainer.loop.chunk import CallResult


def test_steps_that_wait_for_their_batches(workload, only, problems):
    def checked(waiting):
        seconds = np.array([[0.0, waiting, 0.1 - waiting]] * 8)
        metrics = np.ones([8, len(workload.loops.step_functions.metrics.step)], np.float32)
        return step_times(workload.loops, [CallResult(metrics, seconds, np.zeros(8, np.int32), None, wall=0.8)])

    problem = only(checked(0.05))
    assert problem.what == "steps wait 50% of their time for a batch"
    assert problem.gain == "2.00 times the steps a second"
    assert not problems(checked(0.01))


def test_a_gpu_that_tensorflow_does_not_see(monkeypatch, only, problems):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    monkeypatch.setattr(environment_module, "driver", lambda: card)
    problem = only(environment())
    assert problem.what == "TensorFlow sees no GPU, although H200 is present with driver 570.1"
    monkeypatch.setattr(environment_module, "driver", lambda: None)
    assert not problems(environment())


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
    assert len(names) > 3
    assert sections == names, f"sections of {HELP} and names of problems differ: {sorted(sections ^ names)}"
