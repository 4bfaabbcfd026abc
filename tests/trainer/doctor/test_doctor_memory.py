"""The memory that a step needs against what is available: made up for the test, and once this machine's."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from one_bucket import one_bucket

from xtts.shared.cache.cache_spec import Shard, with_digest
from xtts.trainer.data.batch_sizes import batch_sizes
from xtts.trainer.doctor import checks
from xtts.trainer.doctor import memory as memory_module
from xtts.trainer.doctor.memory import available_bytes, free_host_bytes, memory

KEPT, GRADIENTS, FRAME = 1600 << 20, 800 << 20, 1 << 16
"""Bytes: of weights, moments and averages, of what else a step takes before its first clip, and for every frame."""


def bytes_of(clips, frames):
    return KEPT + GRADIENTS + FRAME * clips * frames


@pytest.fixture
def with_clips(setup):
    """`with_clips(500)`: a spec of one bucket of 872 frames with so many training clips."""

    def change(records):
        file = with_digest("train/bucket-00/shard-00000-of-00001.tfrecord", "0" * 64)
        facts = {"records": records, "bytes": 1 << 20, "bytes_with_mels": 1 << 20}
        shards = {"train": [Shard(file=file, sha256="0" * 64, settings="0" * 64, **facts)], "validation": []}
        bucket = setup.spec.buckets[0].model_copy(update={"tokens": 218, "frames": 872, **shards})
        return setup.spec.model_copy(update={"buckets": [bucket]})

    return change


@pytest.fixture
def workload_of(monkeypatch, setup, configured):
    """`workload_of(spec, "a.b=c")`: one whose steps need KEPT + GRADIENTS + FRAME x frames."""

    def make(spec, *assignments):
        config = configured(*assignments)
        sizes = batch_sizes(spec, config.training)
        buckets = [one_bucket("", number, batch_size=size, spec=spec) for number, size in sizes.items()]
        return SimpleNamespace(
            step_functions=SimpleNamespace(training=config.training),
            loop=SimpleNamespace(buckets=[bucket for bucket in buckets if bucket.trains]),
        )

    monkeypatch.setattr(memory_module, "step_bytes", lambda _, bucket, batch: bytes_of(*batch.mel.shape[:2]))
    monkeypatch.setattr(memory_module, "weight_bytes", lambda _: KEPT // 4)
    return make


def test_a_smaller_batch_is_advised(workload_of, with_clips, only, problems):
    spec, free = with_clips(500), 4 << 30
    workload = workload_of(spec, "training.batch_size=64", "training.gradient_accumulation_steps=4")
    problem = only(memory(workload, free))
    assert problem.what == "the largest step, 64 clips x 872 frames, needs 5.8 GiB, but only 4.0 GiB are available"
    # From the line through the weights and this batch; what a step takes besides makes it too high: 20 would fit.
    assert (problem.setting, problem.value) == ("training.batch_size", 24)
    assert "run xtts-doctor again" in problem.remedy
    assert not problems(memory(workload_of(spec, "training.batch_size=8"), 8 << 30))


def test_no_batch_setting_helps_one_clip_a_micro_batch(workload_of, with_clips, only):
    settings = ("training.batch_size=4", "training.gradient_accumulation_steps=4")
    problem = only(memory(workload_of(with_clips(500), *settings), 2 << 30))
    assert problem.cause == "it is too large even with one clip per micro-batch, so no batch setting helps"
    assert problem.setting == ""
    assert "model.size" in problem.remedy


def test_memory_that_no_gpu_reports_gets_no_verdict(workload_of, with_clips, monkeypatch):
    monkeypatch.setattr(memory_module, "step_device", lambda: "GPU:0")
    monkeypatch.setattr(memory_module, "driver", lambda: {"memory.total": "143771"})
    assert available_bytes() == 143771 << 20
    monkeypatch.setattr(memory_module, "driver", lambda: {"memory.total": "[N/A]"})
    assert available_bytes() is None
    workload = workload_of(with_clips(40))
    (fact,) = memory(workload, available_bytes())
    assert fact.text.endswith("the driver does not report the memory")


def test_a_control_group_leaves_its_limit_less_its_use(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_module, "CONTROL_GROUPS", tmp_path)
    (tmp_path / "memory.current").write_text(f"{90 << 20}\n")
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {30 << 20}\n")
    (tmp_path / "memory.max").write_text(f"{100 << 20}\n")
    assert free_host_bytes() == 40 << 20
    (tmp_path / "memory.max").write_text("max\n")
    assert free_host_bytes() > 1 << 28


def test_steps_that_do_not_fit_are_not_run(workload, configured, monkeypatch):
    settings = ("shapes.buckets=1", "training.batch_size=4", "training.validate_every=1")
    examined = replace(workload.setup, config=configured(*settings))
    monkeypatch.setattr(checks, "build_loops", lambda *_: workload.loops)
    monkeypatch.setattr(memory_module, "step_bytes", lambda *_: 8 << 30)
    monkeypatch.setattr(checks, "available_bytes", lambda: 4 << 30)
    report = checks.run_checks(examined, count=1, progress=lambda _: None)
    facts = {fact.name: fact for section, _ in report.values() for fact in section}
    assert facts["not run"].text == "they do not fit into memory"
    assert [problem.setting for _, problem in report.problems] == ["training.batch_size", "shapes.buckets"]
