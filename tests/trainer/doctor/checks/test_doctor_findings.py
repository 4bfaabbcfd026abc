"""Seeded faults, each found and named by the section that looks for it; none where there is none."""

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.doctor import examination
from xtts.trainer.doctor.checks import environment as environment_module
from xtts.trainer.doctor.checks.environment import environment, read_speed
from xtts.trainer.doctor.checks.graph import data_set_check, function_check, graph_of
from xtts.trainer.doctor.checks.pauses import pauses
from xtts.trainer.doctor.checks.shapes import shapes
from xtts.trainer.doctor.checks.steps import Arithmetic, StepTimes, arithmetic, host_entry, input_wait
from xtts.trainer.doctor.finding import Fact, Finding


def test_a_py_function_in_the_pipeline_and_batches_of_another_bucket(subject, only):
    def nothing(batch):
        return batch._replace(tokens=tf.py_function(lambda x: x, [batch.tokens], tf.int32))

    first, second = training_buckets(subject.cache, subject.spec, subject.config)
    healthy = training_batches(first, 0)
    assert not data_set_check({"mine": healthy})[1]
    finding = only(data_set_check({"mine": healthy.map(nothing)}))
    assert finding.what.startswith("mine: EagerPyFunc")
    assert "calls Python for every batch" in finding.what

    assert not shapes({"a": healthy}, {"a": first.signature})[1]
    finding = only(shapes({"a": healthy}, {"a": second.signature}))
    assert finding.what.startswith("a: ")
    assert ", locked to " in finding.what


def test_a_step_that_calls_tf_shape_on_a_none_dimension(only):
    def body(mel):
        return tf.zeros([tf.shape(mel)[0], 3]) + mel[:, :3]

    def graph(frames):
        return graph_of(tf.function(body, input_signature=[tf.TensorSpec([frames, 80], name="mel")]))

    finding = only(function_check({"my step": graph(None)}))
    assert finding.what.startswith("my step: tf.shape of mel (None, 80) at Shape")
    assert "input_signature" in finding.fix
    assert not function_check({"step": graph(4)})[1]


def step_times(waiting, entry):
    return StepTimes(
        compile_seconds=1.0, seconds=np.array([[0.0, waiting, 0.1 - waiting]] * 8), places=np.zeros(8, np.int32),
        useful_frames=1e4, entry_seconds=entry, traces=1,
    )  # fmt: skip


def test_steps_that_wait_for_their_batches(only):
    finding = only(input_wait(step_times(0.05, 0.0)))
    assert finding.what == "steps wait 50% of their time for a batch"
    assert finding.gain == "2.00 times the steps a second"
    assert not input_wait(step_times(0.01, 0.0))[1]


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, [("training.steps_per_call", 10, "2.00 times the steps a second")]),
        (
            {"steps_per_call": 50, "validate_every": 2},
            [("training.validate_every", 20, "1.50 times the steps a second")],
        ),
    ],
)
def test_python_entered_for_every_step(changes, advice):
    often = {"steps_per_call": 1, "validate_every": 100, "samples_every": None, "checkpoint_every": 100}
    found = host_entry(step_times(0.0, 0.1), TrainingConfig(**often | changes))[1]
    assert [(finding.setting, finding.value, finding.gain) for finding in found] == advice


def test_pauses_that_take_more_than_two_in_a_hundred(only):
    training = TrainingConfig(validate_every=100, samples_every=500, checkpoint_every=1000)
    seconds = {"training.validate_every": 0.05, "training.samples_every": 5.0, "training.checkpoint_every": 0.1}
    facts, findings = pauses(seconds, training, step_seconds=0.1)
    assert facts[0].value["share"] == pytest.approx(0.0106 / 0.1106, rel=1e-6)
    finding = only((facts, findings))
    assert finding.setting == "training.samples_every"
    assert finding.what == "9.6% of a run is spent outside its training loop"
    assert not pauses(seconds, training.model_copy(update={"samples_every": finding.value}), step_seconds=0.1)[1]


@pytest.mark.parametrize(
    ("bfloat16", "used", "gpu", "advice"),
    [
        (3e10, "bfloat16", False, [("float32", "up to 3.3 times the speed of the matrix products")]),
        (4e11, "float32", False, []),
    ],
)
def test_the_faster_precision_is_advised_where_it_is_measured(bfloat16, used, gpu, advice):
    measured = Arithmetic(reached=1e9, ceilings={"float32": 1e11, "bfloat16": bfloat16}, used=used, gpu=gpu)
    assert [(finding.value, finding.gain) for finding in arithmetic(measured)[1]] == advice


@pytest.fixture
def read(tmp_path):
    """The speed of reading one small shard of `tmp_path`."""
    (tmp_path / "shard").write_bytes(bytes(100))
    return read_speed([tmp_path / "shard"])


def test_a_gpu_that_tensorflow_does_not_see(monkeypatch, tmp_path, read, only):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    monkeypatch.setattr(environment_module, "driver", lambda: card)
    finding = only(environment(tmp_path, read))
    assert finding.what == "TensorFlow sees no GPU, although H200 is present with driver 570.1"
    monkeypatch.setattr(environment_module, "driver", lambda: None)
    assert not environment(tmp_path, read)[1]


def test_where_xla_does_not_compile_the_rest_is_examined(workload, monkeypatch):
    broken = Finding(name="xla-fails", section="environment", what="XLA does not compile here: no ptxas", cause="")
    fact = Fact(name="xla", value={"works": False, "seconds": 0.1}, text="fails: no ptxas")
    monkeypatch.setattr(examination, "Workload", lambda *_: workload)
    monkeypatch.setattr(environment_module, "_xla", lambda: ([fact], [broken]))
    monkeypatch.setattr(examination, "run_steps", lambda *_: pytest.fail("a step was compiled"))
    monkeypatch.setattr(examination, "memory", lambda *_, **__: pytest.fail("a step was compiled"))
    report = examination.examine(workload.subject, count=4, search=True, progress=lambda _: None)
    assert [finding.name for finding in report.findings] == ["xla-fails", "padding"]  # of one shape
    facts = {section.name: {fact.name: fact for fact in section.facts} for section in report.sections}
    assert facts["steps"]["not run"].text == "XLA does not compile here"
    assert facts["shapes"]["batches read"].value >= 3
