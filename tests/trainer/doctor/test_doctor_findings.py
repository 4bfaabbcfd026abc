"""Seeded faults, each found and named by the section that looks for it; none where there is none."""

import time

import numpy as np
import pytest
import tensorflow as tf

from xtts.precompute.build import build_cache
from xtts.precompute.progress import Silence
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.shared.index import IndexRow
from xtts.shared.stats import corpus_stats
from xtts.trainer.batches import batch_sizes
from xtts.trainer.doctor import environment as environment_module
from xtts.trainer.doctor import settings
from xtts.trainer.doctor.advice import overlay
from xtts.trainer.doctor.cost import step_flops
from xtts.trainer.doctor.environment import read_speed
from xtts.trainer.doctor.finding import Finding
from xtts.trainer.doctor.graph import data_set_check, function_check, graph_of
from xtts.trainer.doctor.loading import data, disk_demand, load_times
from xtts.trainer.doctor.memory import fit, largest_fitting
from xtts.trainer.doctor.shapes import shapes
from xtts.trainer.doctor.steps import Arithmetic, StepTimes, arithmetic, host_entry, input_wait
from xtts.trainer.doctor.subject import load_subject
from xtts.trainer.doctor.workload import signatures, training_data


@pytest.fixture(scope="module")
def subject(tiny_cache, micro):
    return load_subject(["tiny"], micro, {}, tiny_cache)


@pytest.fixture
def configured(micro):
    return lambda *assignments: load_config("tiny", assignments=[*micro, *assignments])


def only(result):
    """The one finding of a check."""
    (finding,) = result[1]
    return finding


def test_a_cap_of_800_frames_on_ljspeechs_lengths(ljspeech_rows, configured):
    finding = only(settings.caps(ljspeech_rows, configured("shapes.max_mel_frames=800")))
    assert finding.what == "shapes.max_mel_frames 800 rejects 1,462 of 13,100 clips (11.2%)"
    assert finding.remedy == "set shapes.max_mel_frames to 869; then rebuild the cache"
    assert finding.gain == "1,462 clips more to train on, 3.9 hours"
    assert not settings.caps(ljspeech_rows, configured("shapes.max_mel_frames=869"))[1]


def rows_of(frames):
    return [
        IndexRow(id=str(i), speaker="", text="", status="kept", token_length=9, mel_length=n, seconds=n / 86)
        for i, n in enumerate(frames)
    ]


def test_a_cap_may_keep_out_a_handful_and_no_more(configured):
    capped = configured("shapes.max_mel_frames=800")
    assert not settings.caps(rows_of([500] * 99 + [900]), capped)[1]
    assert "rejects 2 of 100 clips (2.0%)" in only(settings.caps(rows_of([500] * 98 + [900] * 2), capped)).what


def test_padding_names_the_bucket_count_that_mends_it(subject):
    random = np.random.default_rng(0)
    rows = rows_of([int(n) for n in random.integers(100, 870, 2000)])
    stats = corpus_stats(rows)
    wasteful = subject.spec.model_copy(
        update={
            "buckets": subject.spec.buckets[:1],
            "statistics": subject.spec.statistics.model_copy(update={"fill": stats.fills[1]}),
        }
    )
    finding = only(settings.padding(rows, wasteful))
    assert finding.setting == "shapes.buckets"
    assert stats.fills[finding.value] >= 0.97 * stats.fills[12] > stats.fills[1]
    assert finding.gain.startswith(f"{stats.fills[finding.value] / stats.fills[1]:.2f} times the useful frames")


def test_a_batch_size_of_one(subject, configured):
    config = configured("training.batch_size=1")
    sizes = batch_sizes(subject.spec, config.training)
    finding = only(settings.batches(config, subject.spec, sizes, 0.05))
    assert finding.what == "training.batch_size is 1: a step works on a single clip"
    assert finding.setting == "training.batch_size"
    assert finding.value > 1
    assert finding.gain.startswith("up to 20 times the frames a second")


def test_validation_batches_full_of_blanks(subject, configured):
    config = configured("training.batch_size=9", "training.validate_every=1")
    sizes = batch_sizes(subject.spec, config.training)
    finding = only(settings.batches(config, subject.spec, sizes, None))
    assert "blank clips in validation batches take" in finding.what
    assert finding.setting in ("training.batch_size", "training.validate_every")
    calm = config.training.model_copy(update={"validate_every": 1000})
    assert settings.blank_share(config.model_copy(update={"training": calm}), subject.spec, sizes) < 0.01


def test_buckets_that_disagree_with_the_cache(subject, configured):
    finding = only(settings.disagreements(configured("shapes.buckets=5"), subject.spec, subject.cache))
    assert finding.what == "shapes.buckets is 5, the cache was built with 2"
    assert finding.remedy == f"set shapes.buckets to 2; or rebuild {subject.cache} with this configuration"


def test_a_py_function_in_the_pipeline(subject):
    def nothing(*batch):
        return (tf.py_function(lambda x: x, [batch[0]], tf.int32), *batch[1:])

    healthy = training_data(subject, 0)
    assert not data_set_check({"mine": healthy})[1]
    finding = only(data_set_check({"mine": healthy.map(nothing)}))
    assert finding.what.startswith("mine: EagerPyFunc")
    assert "calls Python for every batch" in finding.what


def test_a_step_that_calls_tf_shape_on_a_none_dimension():
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


def test_a_shard_on_a_slow_reader(subject):
    def delayed(*batch):
        with tf.control_dependencies([tf.py_function(lambda: time.sleep(0.55), [], [])]):
            return tuple(tf.identity(part) for part in batch)

    slow = training_data(subject, 0).map(delayed)
    times = load_times({0: slow, 1: training_data(subject, 1)}, {0: 2, 1: 0})
    finding = only(data(times, step_seconds=None))
    assert times.verdict == "slow"
    assert finding.what.startswith("loading is slow: 5")
    against = only(data(times, step_seconds=0.1))
    assert "times the steps a second: one takes 100.0 ms" in against.gain
    assert not data(times, step_seconds=2.0)[1]


def test_one_slow_batch_in_many_swings():
    times = load_times({0: tf.data.Dataset.range(40)}, {0: 30})
    uneven = type(times)(first=0.0, seconds=np.array([0.001] * 30 + [0.3]))
    fact = next(fact for fact in data(uneven, step_seconds=0.05)[0] if fact.name == "load steadiness")
    assert fact.value["verdict"] == "swings"
    assert times.verdict == "good"


def test_batches_of_another_bucket(subject):
    named = signatures(subject)
    assert not shapes({"a": training_data(subject, 0)}, {"a": named[0]})[1]
    finding = only(shapes({"a": training_data(subject, 1)}, {"a": named[0]}))
    assert finding.what.startswith("a: ")
    assert ", locked to " in finding.what


def test_a_disk_that_cannot_keep_up():
    asked = {"batch_bytes": 50e6, "cache_bytes": 10**12, "free_memory": 10**10, "step_seconds": 0.1}
    assert "of a disk that reads 95" in only(disk_demand(1e8, **asked)).what
    assert not disk_demand(1e9, **asked)[1]
    assert not disk_demand(1e8, **{**asked, "cache_bytes": 10**9})[1]


def step_times(waiting, entry):
    return StepTimes(
        compile_seconds=1.0, seconds=np.array([[0.1, waiting]] * 8), places=np.zeros(8, np.int32),
        useful_frames=1e4, entry_seconds=entry, traces=1,
    )  # fmt: skip


def test_steps_that_wait_for_their_batches():
    finding = only(input_wait(step_times(0.05, 0.0)))
    assert finding.what == "steps wait 50% of their time for a batch"
    assert finding.gain == "2.00 times the steps a second"
    assert not input_wait(step_times(0.01, 0.0))[1]


def test_python_entered_for_every_step():
    finding = only(host_entry(step_times(0.0, 0.1), steps_per_call=1))
    assert finding.setting == "training.steps_per_call"
    assert finding.gain == "2.00 times the steps a second"
    assert not host_entry(step_times(0.0, 0.1), steps_per_call=50)[1]


def test_the_faster_precision_is_advised_where_it_is_measured():
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


def test_a_batch_too_large_for_the_memory():
    finding = only(fit(8 << 30, 2 << 30, size=64, micro=4))
    assert finding.what == "a step of 64 clips needs 8.0 GiB, 2.0 GiB are available"
    assert (finding.setting, finding.value) == ("training.batch_size", 12)
    assert only(fit(8 << 30, 2 << 30, size=4, micro=4)).remedy.startswith(
        "set training.gradient_accumulation_steps to 8"
    )
    assert not fit(1 << 30, 2 << 30, size=64, micro=4)[1]


def test_settings_of_the_input_pipeline(subject, configured):
    def found(config, **changes):
        sizes = batch_sizes(subject.spec, config.training)
        where = {"free_memory": 8 << 30, "gpu": False, **changes}
        return [finding.setting for finding in settings.reading(config, subject.spec, sizes, **where)[1]]

    assert found(configured()) == []
    assert found(configured(), free_memory=600 << 20) == ["data.shuffle_memory_mb"]
    assert found(configured("training.level_batches=false")) == ["training.level_batches"]
    off = configured("data.prefetch_to_device=false")
    assert found(off, gpu=True) == ["data.prefetch_to_device"]
    assert found(off) == []


def test_a_gpu_that_tensorflow_does_not_see(monkeypatch, tmp_path):
    card = {"name": "H200", "driver_version": "570.1", "memory.total": "143771"}
    monkeypatch.setattr(environment_module, "driver", lambda: card)
    shard = tmp_path / "shard"
    shard.write_bytes(bytes(3 << 20))
    speed = read_speed([shard])
    assert speed.bytes == 3 << 20
    assert speed.bytes_per_second > 1e6
    finding = only(environment_module.environment(tmp_path, speed))
    assert finding.what == "TensorFlow sees no GPU, though H200 is here with driver 570.1"
    monkeypatch.setattr(environment_module, "driver", lambda: None)
    assert not environment_module.environment(tmp_path, speed)[1]


def test_clips_at_their_own_lengths_are_unusable(tiny_corpus, tmp_path, micro):
    flags = {"shapes.pad_to_fixed_length": False, "shapes.buckets": 1}
    build_cache(tiny_corpus, tmp_path / "features", load_config("tiny", flags=flags), workers=1, watch=Silence())
    with pytest.raises(LockstepError, match=r"expected shapes\.pad_to_fixed_length: true; run xtts-"):
        load_subject(["tiny"], micro, {}, tmp_path / "features")
