"""Seeded faults, each found and named by the section that looks for it; none where there is none."""

import io
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.shared.config_files import load_config
from xtts.trainer.dataset import signatures
from xtts.trainer.doctor import environment as environment_module
from xtts.trainer.doctor import examination
from xtts.trainer.doctor import memory as memory_module
from xtts.trainer.doctor.advice import overlay
from xtts.trainer.doctor.cost import step_flops
from xtts.trainer.doctor.environment import read_speed
from xtts.trainer.doctor.finding import Fact, Finding
from xtts.trainer.doctor.examination import examine
from xtts.trainer.doctor.finding import Finding
from xtts.trainer.doctor.graph import data_set_check, function_check, graph_of
from xtts.trainer.doctor.loading import LoadTimes, data, disk_demand, load_times
from xtts.trainer.doctor.memory import available_bytes, fit, free_host_bytes, largest_fitting
from xtts.trainer.doctor.shapes import shapes
from xtts.trainer.doctor.steps import Arithmetic, StepTimes, arithmetic, host_entry, input_wait
from xtts.trainer.doctor.workload import training_data


def test_a_py_function_in_the_pipeline(subject, only):
    def nothing(*batch):
        return (tf.py_function(lambda x: x, [batch[0]], tf.int32), *batch[1:])

    healthy = training_data(subject, 0)
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


def load(*seconds):
    return LoadTimes(first=0.0, seconds=np.array(seconds))


def test_pipelines_are_asked_together_as_the_training_loop_asks_them(only):
    def delayed(number):
        with tf.control_dependencies([tf.py_function(lambda: time.sleep(0.1), [], [])]):
            return tf.identity(number)

    # Eight pipelines of 100 ms a batch each give one every 12.5 ms, half of a step.
    slow = tf.data.Dataset.range(9).repeat().map(delayed).prefetch(1)
    times = load_times(dict.fromkeys(range(8), slow), dict.fromkeys(range(8), 5))
    assert len(times.seconds) == 40
    assert 0.008 < times.mean < 0.04
    assert times.first > 0.1
    assert not data(times, step_seconds=0.05)[1]
    assert "times the steps a second: one takes 1.0 ms" in only(data(times, step_seconds=0.001)).gain


def test_loading_that_is_slower_than_the_steps(only):
    times = load(0.55, 0.55, 0.56)
    assert times.verdict == "slow"
    assert only(data(times, step_seconds=None)).what == "loading is slow: 553 ms a batch, p95 559 ms, steady"
    assert only(data(times, step_seconds=0.1)).gain == "5.5 times the steps a second: one takes 100.0 ms"
    assert not data(times, step_seconds=2.0)[1]
    assert not data(load(0.4), step_seconds=None)[1]
    assert [load(0.09).verdict, load(0.4).verdict] == ["good", "moderate"]


def test_one_slow_batch_in_many_swings():
    fact = next(fact for fact in data(load(*[0.001] * 30, 0.3), step_seconds=0.05)[0] if fact.name == "load steadiness")
    assert fact.value["verdict"] == "swings"


@pytest.fixture
def slow_reads(monkeypatch):
    """`slow_reads(delay)`: the doctor's reads of a file take `delay(path)` seconds more."""

    def start(delay):
        class SlowFile(io.FileIO):
            def read(self, size=-1):
                time.sleep(delay(self.name))
                return super().read(size)

        monkeypatch.setattr(environment_module, "open", lambda path, *_, **__: SlowFile(path), raising=False)

    return start


def test_a_shard_on_a_slow_reader(subject, slow_reads):
    shard = subject.spec.buckets[1].train[0].file
    slow_reads(lambda path: 0.3 * (path == subject.cache / shard))
    (finding,) = examine(subject, count=0, search=False, watch=lambda doing: None).findings
    assert finding.section == "environment"
    assert finding.what.startswith(f"slow to read: {shard} at 0.")
    assert finding.cause == "what holds it is throttled, fails in places, or is slower than what holds the others"
    assert finding.remedy == f"copy {subject.cache} to another disk, and look at the health of this one"
    assert finding.gain == "0.3 s less reading in every epoch that reads the disk"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """(folder, files): four of 3 MiB, of which 2 MiB are read, and one of 1 KiB."""
    folder = tmp_path_factory.mktemp("shards")
    files = [folder / f"shard-{number}" for number in range(5)]
    for file in files:
        file.write_bytes(bytes(3 << 20) if file != files[4] else bytes(1 << 10))
    return folder, files


def test_a_slow_shard_among_large_ones_is_named(shards, slow_reads, only):
    folder, files = shards
    slow_reads(lambda path: 0.2 * (path == files[2]))
    speed = read_speed(files)
    assert speed.bytes == 4 * (2 << 20) + (1 << 10)
    finding = only(environment_module.environment(folder, speed))
    assert re.fullmatch(r"slow to read: shard-2 at [\d.]+ MiB/s; a typical shard is read at [\d,]+ MiB/s", finding.what)
    assert re.fullmatch(r"0\.[34] s less reading in every epoch that reads the disk", finding.gain)


@pytest.mark.parametrize("kind", ["healthy", "far away", "a stall of milliseconds", "busy for a moment"])
def test_sound_shards_have_no_finding(shards, slow_reads, kind):
    folder, files = shards
    reads = []

    def delay(path):
        reads.append(path)
        return {
            "healthy": 0.0,
            "far away": 0.1,  # the small shard has a hundredth of the others' speed
            "a stall of milliseconds": 0.02 * (path == files[4]),
            "busy for a moment": 0.3 * (reads.count(files[2]) == 1 and path == files[2]),
        }[kind]

    slow_reads(delay)
    assert not environment_module.environment(folder, read_speed(files))[1]
    assert reads.count(files[2]) == (4 if kind == "busy for a moment" else 1)


def test_batches_of_another_bucket(subject, only):
    named = signatures(subject.spec, subject.sizes)
    assert not shapes({"a": training_data(subject, 0)}, {"a": named[0]})[1]
    finding = only(shapes({"a": training_data(subject, 1)}, {"a": named[0]}))
    assert finding.what.startswith("a: ")
    assert ", locked to " in finding.what


def test_a_disk_that_cannot_keep_up(only):
    asked = {"batch_bytes": 50e6, "cache_bytes": 10**12, "free_memory": 10**10, "step_seconds": 0.1}
    assert "of a disk that reads 95" in only(disk_demand(1e8, **asked)).what
    assert not disk_demand(1e9, **asked)[1]
    assert not disk_demand(1e8, **{**asked, "cache_bytes": 10**9})[1]


def step_times(waiting, entry):
    return StepTimes(
        compile_seconds=1.0, seconds=np.array([[0.1, waiting]] * 8), places=np.zeros(8, np.int32),
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


@pytest.mark.parametrize("memory", [lambda n: 100 + 7 * n, lambda n: 50 + 3 * n + 0.02 * n * n])
def test_the_largest_batch_is_found_in_few_compilations(memory):
    tried = []

    def measure(size):
        tried.append(size)
        return memory(size)

    found = largest_fitting(measure, 1000, start=8, most=10_000)
    assert memory(found) <= 900
    assert memory(1.1 * found + 1) > 900
    assert len(tried) <= 5
    assert largest_fitting(measure, 10**9, start=8, most=40) == 40
    assert largest_fitting(measure, 10, start=8, most=40) == 0
    assert largest_fitting(measure, 1000, start=8, most=10_000, micro=4) % 4 == 0


def test_the_overlay_holds_each_setting_once(tmp_path):
    first = Finding(section="config", what="too small", cause="", setting="training.batch_size", value=8)
    second = Finding(section="config", what="too large", cause="", setting="training.batch_size", value=2)
    cap = Finding(section="config", what="a cap", cause="", setting="shapes.max_mel_frames", value=None)
    other = Finding(section="graph", what="no setting", cause="", fix="write it anew")
    text = overlay([first, cap, second, other])
    (tmp_path / "more.yaml").write_text(text)
    merged = load_config("tiny", overlays=[str(tmp_path / "more.yaml")])
    assert (merged.training.batch_size, merged.shapes.max_mel_frames) == (8, None)
    assert overlay([other]) == ""


def test_a_batch_too_large_for_the_memory(only):
    finding = only(fit(8 << 30, 2 << 30, size=64, micro=4))
    assert finding.what == "a step of 64 clips needs 8.0 GiB, 2.0 GiB are available"
    assert (finding.setting, finding.value) == ("training.batch_size", 12)
    assert only(fit(8 << 30, 2 << 30, size=4, micro=4)).remedy.startswith(
        "set training.gradient_accumulation_steps to 8"
    )
    assert not fit(1 << 30, 2 << 30, size=64, micro=4)[1]


def test_the_memory_of_a_gpu_is_what_its_driver_says(monkeypatch):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    assert 1 << 28 < available_bytes() == pytest.approx(free_host_bytes(), rel=0.2)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a GPU"])
    monkeypatch.setattr(memory_module, "driver", lambda: card)
    assert available_bytes() == 143_771 << 20
    monkeypatch.setattr(memory_module, "driver", lambda: {**card, "memory.total": "[N/A]"})
    assert available_bytes() == pytest.approx(free_host_bytes(), rel=0.2)


def test_a_gpu_that_tensorflow_does_not_see(monkeypatch, tmp_path, only):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    monkeypatch.setattr(environment_module, "driver", lambda: card)
    shard = tmp_path / "shard"
    shard.write_bytes(bytes(1 << 20))
    speed = read_speed([shard])
    assert speed.bytes == 1 << 20
    assert speed.bytes_per_second > 1e6
    finding = only(environment_module.environment(tmp_path, speed))
    assert finding.what == "TensorFlow sees no GPU, though H200 is here with driver 570.1"
    monkeypatch.setattr(environment_module, "driver", lambda: None)
    assert not environment_module.environment(tmp_path, speed)[1]


def test_where_xla_does_not_compile_the_rest_is_examined(subject, monkeypatch):
    broken = Finding(section="environment", what="XLA does not compile here: no ptxas", cause="", fix="install it")
    fact = Fact(name="xla", value={"works": False, "seconds": 0.1}, text="fails: no ptxas")
    monkeypatch.setattr(environment_module, "_xla", lambda: ([fact], [broken]))
    monkeypatch.setattr(examination, "run_steps", lambda *_: pytest.fail("a step was compiled"))
    monkeypatch.setattr(examination, "memory", lambda *_: pytest.fail("a step was compiled"))
    report = examination.examine(subject, count=4, search=True, watch=lambda _: None)
    assert [finding.what for finding in report.findings] == [broken.what]
    facts = {section.name: {fact.name: fact for fact in section.facts} for section in report.sections}
    assert facts["steps"]["not run"].text == "XLA does not compile here"
    assert facts["shapes"]["batches read"].value >= 4
@pytest.mark.parametrize(
    ("variable", "chosen", "on"),
    [(None, None, False), (None, True, True), ("true", None, True), ("TRUE", None, False), ("false", True, False)],
)
def test_memory_growth_is_told_as_tensorflow_decides_it(monkeypatch, tmp_path, variable, chosen, on):
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
