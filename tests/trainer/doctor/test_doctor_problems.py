"""Seeded faults, each found and named by the section that checks for it; none without a fault."""

import numpy as np
import pytest

from xtts.trainer.doctor import checks
from xtts.trainer.doctor import environment as environment_module
from xtts.trainer.doctor.environment import environment
from xtts.trainer.doctor.results import Fact, Problem
from xtts.trainer.doctor.speed import StepTimes, input_wait
from xtts.trainer.loop.chunk import CallResult


def step_times(waiting):
    return StepTimes(
        compile_seconds=1.0,
        steps=CallResult(None, np.array([[0.0, waiting, 0.1 - waiting]] * 8), np.zeros(8, np.int32), None, wall=0.8),
    )  # fmt: skip


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
