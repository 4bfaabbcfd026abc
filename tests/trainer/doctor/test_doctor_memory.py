"""The memory that a step needs against what is available: made up for the test, and once this machine's."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from xtts.trainer.doctor import checks
from xtts.trainer.doctor import memory as memory_module
from xtts.trainer.doctor.memory import available_bytes, free_host_bytes, memory

KEPT, NEEDED = 1600 << 20, 5888 << 20
"""Bytes: of weights, moments and averages; of the largest step."""


@pytest.fixture
def memory_of(monkeypatch, workload, configured):
    """`memory_of(free, "a.b=c")`: what is said of steps that need NEEDED bytes."""
    monkeypatch.setattr(memory_module, "step_bytes", lambda *_: NEEDED)
    monkeypatch.setattr(memory_module, "weight_bytes", lambda _: KEPT // 4)

    def findings(free, *assignments):
        step_functions = SimpleNamespace(training=configured(*assignments).training)
        return [*memory(SimpleNamespace(buckets=workload.loops.buckets, step_functions=step_functions), free)]

    return findings


def test_a_smaller_batch_is_advised(memory_of, only, problems):
    settings = ("training.batch_size=64", "training.gradient_accumulation_steps=4")
    problem = only(memory_of(4 << 30, *settings))
    assert re.fullmatch(r"the largest step, 3 clips x \d+ frames, needs 5.8 GiB, but only 4.0 GiB .*", problem.what)
    # From the line through the weights and this batch: 27.8, of which four micro-batches hold 24.
    assert problem.remedy.startswith("set training.batch_size to 24, then run xtts-doctor again")
    assert not problems(memory_of(8 << 30, *settings))


def test_no_batch_setting_helps_one_clip_a_micro_batch(memory_of, only):
    problem = only(memory_of(2 << 30, "training.batch_size=4", "training.gradient_accumulation_steps=4"))
    assert problem.cause == "it is too large even with one clip per micro-batch, so no batch setting helps"
    assert "model.size" in problem.remedy


def test_memory_that_no_gpu_reports_gets_no_verdict(memory_of, monkeypatch):
    monkeypatch.setattr(memory_module, "step_device", lambda: "GPU:0")
    monkeypatch.setattr(memory_module, "driver", lambda: {"memory.total": "143771"})
    assert available_bytes() == 143771 << 20
    monkeypatch.setattr(memory_module, "driver", lambda: {"memory.total": "[N/A]"})
    assert available_bytes() is None
    (fact,) = memory_of(available_bytes())
    assert fact.text.endswith("the driver does not report the memory")


def test_a_control_group_leaves_its_limit_less_its_use(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_module, "CONTROL_GROUPS", tmp_path)
    (tmp_path / "memory.current").write_text(f"{90 << 20}\n")
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {30 << 20}\n")
    (tmp_path / "memory.max").write_text(f"{100 << 20}\n")
    assert free_host_bytes() == 40 << 20
    (tmp_path / "memory.max").write_text("max\n")
    assert free_host_bytes() > 1 << 28


def test_steps_that_do_not_fit_are_not_run(workload, configured, problems, monkeypatch):
    settings = ("shapes.buckets=1", "training.batch_size=4", "training.validate_every=1")
    examined = replace(workload.setup, config=configured(*settings))
    monkeypatch.setattr(checks, "build_loops", lambda *_: workload.loops)
    monkeypatch.setattr(memory_module, "step_bytes", lambda *_: 8 << 30)
    monkeypatch.setattr(memory_module, "weight_bytes", lambda _: KEPT // 4)
    monkeypatch.setattr(checks, "available_bytes", lambda: 4 << 30)
    monkeypatch.setattr(checks, "warm_up", lambda *_: pytest.fail("a step was run"))
    findings = checks.run_checks(examined, count=1, progress=lambda _: None)
    assert [problem.name for problem in problems(findings)] == ["padding", "out-of-memory"]
