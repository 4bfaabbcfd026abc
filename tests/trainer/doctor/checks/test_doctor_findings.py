"""Seeded faults, each found and named by the section that looks for it; none where there is none."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.shared.config_files import load_config
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.doctor import examination
from xtts.trainer.doctor.advice import overlay
from xtts.trainer.doctor.checks import environment as environment_module
from xtts.trainer.doctor.checks.cost import step_flops
from xtts.trainer.doctor.checks.environment import read_speed
from xtts.trainer.doctor.checks.graph import data_set_check, function_check, graph_of
from xtts.trainer.doctor.checks.pauses import pauses
from xtts.trainer.doctor.checks.shapes import shapes
from xtts.trainer.doctor.checks.steps import Arithmetic, StepTimes, arithmetic, host_entry, input_wait
from xtts.trainer.doctor.finding import Fact, Finding


def test_a_py_function_in_the_pipeline(subject, only):
    def nothing(batch):
        return batch._replace(tokens=tf.py_function(lambda x: x, [batch.tokens], tf.int32))

    healthy = training_batches(training_buckets(subject.cache, subject.spec, subject.config)[0], 0)
    assert not data_set_check({"mine": healthy})[1]
    finding = only(data_set_check({"mine": healthy.map(nothing)}))
    assert finding.what.startswith("mine: EagerPyFunc")
    assert "calls Python for every batch" in finding.what


def test_a_step_that_calls_tf_shape_on_a_none_dimension(only):
    @tf.function(input_signature=[tf.TensorSpec([None, 80], name="mel")])
    def step(mel):
        return tf.zeros([tf.shape(mel)[0], 3])

    finding = only(function_check({"my step": graph_of(step)}))
    assert finding.what.startswith("my step: tf.shape of mel (None, 80) at Shape")
    assert "input_signature" in finding.fix
    assert not function_check({"loop": graph_of(step)}, static=False)[1]


def test_a_locked_step_has_no_finding():
    @tf.function(input_signature=[tf.TensorSpec([4, 80])])
    def step(mel):
        return tf.zeros([tf.shape(mel)[0], 3]) + mel[:, :3]

    assert not function_check({"step": graph_of(step)})[1]


def test_batches_of_another_bucket(subject, only):
    first, second = training_buckets(subject.cache, subject.spec, subject.config)
    assert not shapes({"a": training_batches(first, 0)}, {"a": first.signature})[1]
    finding = only(shapes({"a": training_batches(second, 0)}, {"a": first.signature}))
    assert finding.what.startswith("a: ")
    assert ", locked to " in finding.what


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


def test_python_entered_for_every_step(only):
    often = {"steps_per_call": 1, "validate_every": 100, "samples_every": None, "checkpoint_every": 100}
    finding = only(host_entry(step_times(0.0, 0.1), TrainingConfig(**often)))
    assert (finding.setting, finding.value) == ("training.steps_per_call", 10)
    assert finding.gain == "2.00 times the steps a second"
    finding = only(
        host_entry(step_times(0.0, 0.1), TrainingConfig(**often | {"steps_per_call": 50, "validate_every": 2}))
    )
    assert (finding.setting, finding.value) == ("training.validate_every", 20)
    assert not host_entry(step_times(0.0, 0.1), TrainingConfig(**often | {"steps_per_call": 50, "log_every": 1}))[1]


def test_pauses_that_take_more_than_two_in_a_hundred(only):
    training = TrainingConfig(validate_every=100, samples_every=500, checkpoint_every=1000)
    seconds = {"training.validate_every": 0.05, "training.samples_every": 5.0, "training.checkpoint_every": 0.1}
    facts, findings = pauses(seconds, training, step_seconds=0.1)
    assert facts[0].value["share"] == pytest.approx(0.0106 / 0.1106, rel=1e-6)
    finding = only((facts, findings))
    assert finding.setting == "training.samples_every"
    assert finding.what == "9.6% of a run is spent outside its training loop"
    fixed = training.model_copy(update={"samples_every": finding.value})
    facts, findings = pauses(seconds, fixed, step_seconds=0.1)
    assert not findings
    assert facts[0].value["share"] > 0.015  # no longer an interval than it takes
    assert not pauses(seconds, training.model_copy(update={"samples_every": None}), step_seconds=0.1)[1]


def test_the_faster_precision_is_advised_where_it_is_measured(only):
    def measured(bfloat16, used, gpu):
        return arithmetic(Arithmetic(reached=1e9, ceilings={"float32": 1e11, "bfloat16": bfloat16}, used=used, gpu=gpu))

    assert only(measured(3e10, "bfloat16", False)).value == "float32"
    assert only(measured(4e11, "float32", True)).gain == "up to 4.0 times the speed of the matrix products"
    assert not measured(4e11, "float32", False)[1]
    assert not measured(1.2e11, "float32", True)[1]


@pytest.mark.parametrize(
    ("body", "signature", "flops"),
    [
        (lambda x, y: x @ y, ([5, 7], [7, 3]), 2 * 5 * 7 * 3),
        (lambda x, k: tf.nn.conv1d(x, k, 1, "SAME"), ([2, 10, 4], [3, 4, 6]), 2 * 2 * 6 * 4 * (3 * 10 - 2)),
        (lambda x, k: tf.nn.depthwise_conv2d(x, k, [1] * 4, "SAME"), ([2, 1, 10, 4], [1, 3, 4, 1]), 2 * 2 * 4 * 28),
        (lambda x, n: tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, y @ n), (0, x))[1], ([4, 4], [4, 4]),
         5 * 2 * 4**3),
    ],
)  # fmt: skip
def test_flops_are_counted_in_xlas_program(body, signature, flops):
    specs = [tf.TensorSpec(shape) for shape in signature]
    assert step_flops(tf.function(body, input_signature=specs, jit_compile=True, autograph=False), specs) == flops


def test_the_overlay_holds_each_setting_once(tmp_path):
    first = Finding(
        name="batch-of-one", section="config", what="too small", cause="", setting="training.batch_size", value=8
    )
    second = Finding(
        name="out-of-memory", section="config", what="too large", cause="", setting="training.batch_size", value=2
    )
    cap = Finding(
        name="clips-rejected", section="config", what="a cap", cause="", setting="shapes.max_mel_frames", value=None
    )
    other = Finding(name="python-in-the-graph", section="graph", what="no setting", cause="", fix="rewrite it")
    text = overlay([first, cap, second, other])
    (tmp_path / "more.yaml").write_text(text)
    merged = load_config("tiny", overlays=[str(tmp_path / "more.yaml")])
    assert (merged.training.batch_size, merged.shapes.max_mel_frames) == (8, None)
    assert overlay([other]) == ""


def test_a_gpu_that_tensorflow_does_not_see(monkeypatch, tmp_path, only):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    monkeypatch.setattr(environment_module, "driver", lambda: card)
    shard = tmp_path / "shard"
    shard.write_bytes(bytes(1 << 20))
    speed = read_speed([shard])
    assert speed.bytes == 1 << 20
    assert speed.bytes_per_second > 1e6
    finding = only(environment_module.environment(tmp_path, speed))
    assert finding.what == "TensorFlow sees no GPU, although H200 is present with driver 570.1"
    monkeypatch.setattr(environment_module, "driver", lambda: None)
    assert not environment_module.environment(tmp_path, speed)[1]


def test_where_xla_does_not_compile_the_rest_is_examined(subject, monkeypatch):
    what = "XLA does not compile here: no ptxas"
    broken = Finding(name="xla-fails", section="environment", what=what, cause="", fix="install it")
    fact = Fact(name="xla", value={"works": False, "seconds": 0.1}, text="fails: no ptxas")
    monkeypatch.setattr(environment_module, "_xla", lambda: ([fact], [broken]))
    monkeypatch.setattr(examination, "run_steps", lambda *_: pytest.fail("a step was compiled"))
    monkeypatch.setattr(examination, "memory", lambda *_, **__: pytest.fail("a step was compiled"))
    report = examination.examine(subject, count=4, search=True, progress=lambda _: None)
    assert [finding.what for finding in report.findings] == [broken.what]
    facts = {section.name: {fact.name: fact for fact in section.facts} for section in report.sections}
    assert facts["steps"]["not run"].text == "XLA does not compile here"
    assert facts["shapes"]["batches read"].value >= 4


@pytest.mark.parametrize(
    ("variable", "chosen", "on"),
    [(None, None, False), (None, True, True), ("true", None, True), ("TRUE", None, False), ("false", True, False)],
)
def test_memory_growth_is_reported_as_tensorflow_decides_it(monkeypatch, tmp_path, variable, chosen, on):
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    if variable:
        monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", variable)
    gpu = SimpleNamespace(name="/physical_device:GPU:0")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [gpu])
    monkeypatch.setattr(tf.config.experimental, "get_memory_growth", lambda device: chosen)
    monkeypatch.setattr(environment_module, "device_name", lambda: "a GPU")
    (tmp_path / "shard").write_bytes(bytes(100))
    facts, _ = environment_module.environment(tmp_path, read_speed([tmp_path / "shard"]))
    fact = next(fact for fact in facts if fact.name == "memory growth")
    assert fact.value == {gpu.name: on}
    assert fact.text.startswith("on" if on else "off: TensorFlow takes all memory")
