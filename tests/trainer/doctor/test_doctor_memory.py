"""What a step needs against what there is: on memory made up for the test, and once on this machine's."""

from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import tensorflow as tf

from xtts.trainer.data.batch import batch_signature
from xtts.trainer.data.batch_sizes import batch_sizes
from xtts.trainer.doctor import checks
from xtts.trainer.doctor import memory as memory_module
from xtts.trainer.doctor.memory import available_bytes, free_host_bytes, memory

KEPT, GRADIENTS, FRAME = 1600 << 20, 800 << 20, 1 << 16
"""Bytes: of weights, moments and averages, of what else a step takes before its first clip, and for every frame."""


def bytes_of(clips, frames):
    return KEPT + GRADIENTS + FRAME * clips * frames


@pytest.fixture
def workload_of(monkeypatch, setup, configured):
    """`workload_of(spec, "a.b=c")`: one whose steps need KEPT + GRADIENTS + FRAME x frames, and run when they fit."""

    def make(spec, *assignments, runs_in=1 << 50):
        config = configured(*assignments)
        sizes = batch_sizes(spec, config.training)

        def train(_, batch):
            if bytes_of(*batch.mel.shape[:2]) > runs_in:
                raise tf.errors.ResourceExhaustedError(None, None, "out of memory")
            return tf.zeros([8])

        alone = SimpleNamespace(train=train, trace=lambda *_, **__: None)
        monkeypatch.setattr(memory_module, "Steps", lambda *_, **__: alone)
        return SimpleNamespace(
            setup=SimpleNamespace(spec=spec, config=config, sizes=sizes),
            steps=SimpleNamespace(training=config.training, model=None, optimizer=None, step=None, with_mel=None),
            buckets={
                number: SimpleNamespace(signature=batch_signature(spec, spec.buckets[number], size))
                for number, size in sizes.items()
            },
        )

    monkeypatch.setattr(memory_module, "step_bytes", lambda steps, bucket, batch: bytes_of(*batch.mel.shape[:2]))
    monkeypatch.setattr(memory_module, "weight_bytes", lambda steps: KEPT // 4)
    return make


def test_the_batch_advised_fits_and_is_taken(workload_of, with_clips, advised_config, only):
    spec, free = with_clips({872: (500, 9)}), 4 << 30
    workload = workload_of(spec, "training.batch_size=64", "training.gradient_accumulation_steps=4")
    problem = only(memory(workload, free, search=False))
    assert problem.what == "the largest step, 64 clips x 872 frames, needs 5.8 GiB, 4.0 GiB are available"
    size = advised_config(workload.setup.config, spec, [problem]).training.batch_size
    assert size == 20
    assert bytes_of(size, 872) <= 0.9 * free < bytes_of(size + 4, 872)
    assert not memory(workload_of(spec, "training.batch_size=8"), 8 << 30, search=False)[1]


def test_no_batch_setting_helps_one_clip_a_micro_batch(workload_of, with_clips, only):
    settings = ("training.batch_size=4", "training.gradient_accumulation_steps=4")
    problem = only(memory(workload_of(with_clips({872: (500, 9)}), *settings), 2 << 30, search=False))
    assert problem.cause == "it is too large even with one clip per micro-batch, so no batch setting helps"
    assert problem.setting == ""
    assert "model.size" in problem.remedy


def test_a_batch_is_proved_by_running_it(workload_of, with_clips, monkeypatch, only):
    monkeypatch.setattr(memory_module, "accelerator", lambda: "/GPU:0")
    spec, settings = with_clips({872: (40, 4)}), ("training.batch_size=4", "training.gradient_accumulation_steps=4")

    def found(**limits):
        facts, problems = memory(workload_of(spec, *settings, **limits), 64 << 30, search=True)
        return facts[1].value, facts[1].text, problems

    assert found() == (
        {"batch_size": 40, "proved": True},
        "40 (all clips of every bucket, and its largest step ran); 4 now",
        [],
    )
    value, text, (problem,) = found(runs_in=bytes_of(3, 872))
    assert (value, text) == ({"batch_size": 0, "proved": False}, "none fits")
    assert "no batch setting helps" in problem.cause


def test_memory_that_no_gpu_reports_gets_no_verdict(workload_of, with_clips, monkeypatch):
    monkeypatch.setattr(memory_module, "accelerator", lambda: "/GPU:0")
    monkeypatch.setattr(memory_module, "driver", lambda: {"memory.total": "143771"})
    assert available_bytes() == 143771 << 20
    monkeypatch.setattr(memory_module, "driver", lambda: {"memory.total": "[N/A]"})
    assert available_bytes() is None
    workload = workload_of(with_clips({872: (40, 4)}))
    facts, problems = memory(workload, available_bytes(), search=True)
    assert facts[0].text.endswith("the driver does not report the memory")
    assert [fact.text for fact in facts[1:]] == ["not searched: the available memory is unknown"]
    assert problems == []


def test_a_control_group_leaves_its_limit_less_its_use(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_module, "_CONTROL_GROUPS", tmp_path)
    (tmp_path / "memory.current").write_text(f"{90 << 20}\n")
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {30 << 20}\n")
    (tmp_path / "memory.max").write_text(f"{100 << 20}\n")
    assert free_host_bytes() == 40 << 20
    (tmp_path / "memory.max").write_text("max\n")
    assert free_host_bytes() > 1 << 28


def test_steps_that_do_not_fit_are_not_run(workload, configured, monkeypatch):
    settings = ("shapes.buckets=1", "training.batch_size=4", "training.validate_every=1")
    examined, estimated, asked = copy(workload), [], []
    examined.setup = replace(workload.setup, config=configured(*settings), sizes={0: 4})
    monkeypatch.setattr(checks, "Workload", lambda *_: examined)
    monkeypatch.setattr(memory_module, "step_bytes", lambda _, number, __: number << 31 or 8 << 30)
    monkeypatch.setattr(memory_module, "_largest_of", lambda _, size: estimated.append(size) or (None, size, None))
    monkeypatch.setattr(checks, "available_bytes", lambda: 4 << 30)
    # What shuffling is held against is asked for before a step has taken its part.
    monkeypatch.setattr(checks, "free_host_bytes", lambda: asked.append(len(estimated)) or 8 << 30)
    report = checks.run_checks(examined.setup, count=1, search=True, progress=lambda _: None)
    facts = {fact.name: fact for section in report.sections for fact in section.facts}
    assert asked == [0]
    assert facts["largest batch"].value == {"batch_size": 1, "proved": False}
    assert facts["not run"].text == "they do not fit into memory"
    assert [problem.setting for problem in report.problems] == ["training.batch_size", "shapes.buckets"]
