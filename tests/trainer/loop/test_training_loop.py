"""The promise: a closed set of traces, no Python per batch, no dynamic shape. Where the time of a call goes.

The validation loss belongs to the cache: no batch size, row or padding row moves it.
"""

import itertools
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from graph_walk import PYTHON_OPS, unknown_shapes, walk
from kept_steps import KEPT_STEPS
from one_bucket import one_bucket
from scipy.special import logit
from scipy.stats import norm

from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch import Batch
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.loop import train_step
from xtts.trainer.loop import training_loop as loop_module
from xtts.trainer.loop.chunk import Chunk
from xtts.trainer.loop.replicas import build_loops
from xtts.trainer.loop.train_step import UPDATE, StepFunctions
from xtts.trainer.loop.training_loop import Position, TrainingLoop
from xtts.trainer.loop.validation_loop import ValidationLoop
from xtts.trainer.models.acoustic.objective import ACOUSTIC, AcousticObjective
from xtts.trainer.run.bad_clips import clip_names
from xtts.trainer.run.hosted_run import Best
from xtts.trainer.run.reporter import means


def test_compiling_changes_no_weight_and_traces_are_the_buckets_after_any_number_of_steps(compiled_run, training_run):
    _, before, after = compiled_run
    assert all(np.array_equal(before[name], after[name]) for name in before)
    buckets = len(training_run.loop.buckets)
    assert buckets == 2
    assert training_run.step_functions.guard.count("training") == buckets
    assert [*training_run.step_functions.gradient_steps] == [1, 0], "the largest is compiled first"
    for count in (1, 7, 30):
        result = training_run.loop.run(count)
    assert training_run.step_functions.guard.count("training") == buckets
    compiled = [*training_run.step_functions.gradient_steps.values(), training_run.step_functions.update]
    assert all(step.experimental_get_tracing_count() == 1 for step in compiled)
    assert result.metrics.shape == (30, len(ACOUSTIC.step))
    assert np.isfinite(result.metrics).all()
    assert (result.seconds >= 0).all(), "of a batch that is read during a step, the loop waits for no part"
    assert set(result.buckets) == {0, 1}
    np.testing.assert_allclose(
        result.metrics[:, 0], result.metrics[:, 1 : 1 + len(ACOUSTIC.losses)].sum(axis=1), rtol=1e-5
    )


def test_the_host_is_entered_once_for_many_batches(training_run, monkeypatch):
    from tensorflow.python.eager import context

    entries, original = [], context.Context.call_function

    def counted(self, name, *args, **kwargs):
        entries.append(name)
        return original(self, name, *args, **kwargs)

    monkeypatch.setattr(context.Context, "call_function", counted)
    result = training_run.loop.run(40)
    assert len(result.metrics) == 40
    assert len(entries) == 1


def test_a_locked_step_has_no_dynamic_shape_and_no_python_runs_in_the_loop(training_run):
    for step in [*training_run.step_functions.gradient_steps.values(), training_run.step_functions.update]:
        graph = step.get_concrete_function().graph
        assert len(list(walk(graph))) > 200
        assert not {op.type for op in walk(graph)} & set(PYTHON_OPS)
        assert not unknown_shapes(graph)
    kinds = {op.type for op in walk(training_run.loop._run.graph)}
    assert {"Case", "StatelessCase"} & kinds
    assert not kinds & set(PYTHON_OPS)


def test_a_trace_beyond_the_closed_set_stops_the_run(training_run):
    step_functions = training_run.step_functions
    assert step_functions.guard.locked
    signature = training_run.loop.buckets[0].signature_of(5)
    with pytest.raises(
        LockstepError, match=r"bucket 00: a new trace with \(int32\[5, .*expected one of the closed set"
    ):
        step_functions.trace({0: signature})


def test_a_batch_that_is_not_finite_is_skipped_and_counted(training_run):
    """In a graph, as in the loop: called from Python, XLA would compile the step once more."""
    train = training_run.step_functions.train
    step_in_a_graph = tf.function(lambda *parts: train(0, Batch(*parts), 0.01), autograph=False)
    batch = next(iter(training_batches(training_run.loop.buckets[0], 0)))
    before = training_run.state.arrays()
    metrics = step_in_a_graph(*batch._replace(mel=batch.mel * np.nan)).numpy()
    assert metrics[ACOUSTIC.step.index("skipped")] == 1
    after = training_run.state.arrays()
    assert after["step"] == before["step"] + 1
    assert all(np.array_equal(before[name], after[name]) for name in before if name != "step")
    good = step_in_a_graph(*batch).numpy()
    assert good[ACOUSTIC.step.index("skipped")] == 0
    assert training_run.state.arrays()["updates"] == before["updates"] + 1


def test_a_validation_batch_that_is_not_finite_is_left_out_and_its_clips_known(training_run, poison, tmp_path):
    whole, bad = training_run.validation.run()
    assert not bad
    clip = poison(tmp_path / "features", "validation")
    plan = training_run.plan
    buckets = training_buckets(tmp_path / "features", plan.spec, plan.config)
    poisoned = ValidationLoop(buckets, [training_run.step_functions], training_run.loop.stopping)
    losses, bad = poisoned.run()
    assert len(bad) == 1 < len(poisoned.batches)
    assert clip in clip_names(training_run.plan.cache, training_run.plan.spec, "validation", bad[:1])[0]
    assert all(np.isfinite(losses[name]) and losses[name] != whole[name] for name in ACOUSTIC.losses)
    never = {bucket.number: lambda *_: tf.fill([len(ACOUSTIC.held_out), 2], np.nan) for bucket in buckets}
    step_functions = SimpleNamespace(metrics=ACOUSTIC, validation_steps=never)
    losses, bad = ValidationLoop(buckets, [step_functions], training_run.loop.stopping).run()
    assert bad == poisoned.batches
    assert not Best(step=3, loss=1.5).note(6, losses["prior"]), "nothing finite is no better loss"


def test_weights_are_restored_once_the_update_has_written_its_own(training_run):
    """Compiling it is a call that writes the weights as they were."""
    plan, update, written = training_run.plan, Future(), []

    def asked_for(name):
        assert name == UPDATE
        threading.Timer(0.2, update.set_result, [1.0]).start()
        return update

    compiler = SimpleNamespace(submit=lambda *_: None, step=asked_for)
    buckets = training_buckets(plan.cache, plan.spec, plan.config)
    KEPT_STEPS.keep(training_run.loops.replicas, buckets, plan.config)
    build_loops(
        buckets, plan.kind.objective, plan.config, compiler=compiler, restore=lambda _: written.append(update.done())
    )
    assert written == [True]


@pytest.mark.parametrize("several", [False, True])
def test_the_loss_is_the_same_for_every_batch_size(training_run, monkeypatch, several):
    """That of the compiled steps; those of another batch size, or of several batches, run op by op."""
    monkeypatch.setattr(train_step, "locked", lambda body, signature: body)
    plan, state = training_run.plan, training_run.state
    clips = {n: bucket.clips("validation") for n, bucket in enumerate(plan.spec.buckets)}
    assert max(clips.values()) > 1
    trained = [training_run.validation.run()[0][name] for name in ACOUSTIC.losses]
    size = 1 if several else max(clips.values()) + 3  # filled up with padding rows
    assert size != training_run.training.batch_size
    buckets = [one_bucket(plan.cache, n, batch_size=size) for n in clips if clips[n]]
    objective = training_run.step_functions.objective
    step_functions = StepFunctions(objective, state.optimizer, training_run.training, state.step, typical=(1.0, 1.0))
    step_functions.trace({}, {bucket.number: bucket.signature for bucket in buckets})
    step_functions.guard.locked = False
    loop = ValidationLoop(buckets, [step_functions], training_run.loop.stopping)
    tf.config.run_functions_eagerly(True)
    try:
        losses, bad = loop.run()
    finally:
        tf.config.run_functions_eagerly(False)
    assert not bad
    np.testing.assert_allclose([losses[name] for name in ACOUSTIC.losses], trained, rtol=1e-5)


def test_a_stopped_validation_reads_and_gives_nothing(training_run):
    before = training_run.validation.run()
    training_run.loop.stop()
    stopped = training_run.validation.run()
    training_run.loop.stopping.assign(False)
    assert stopped is None
    assert training_run.validation.run() == before


def test_training_times_are_stratified_over_the_clips_of_all_replicas():
    batch, objective = Batch(None, tf.zeros([2, 8, 2], tf.float16), None, None, None, None), AcousticObjective(None)
    for step in range(20):
        numbers = [
            objective.random_inputs(batch, 5, tf.constant(step, tf.int64), replica=replica, replicas=2)
            for replica in range(2)
        ]
        quantiles = norm.cdf(logit([*numbers[0].time, *numbers[1].time]))  # more in the middle of the path
        assert sorted(np.floor(quantiles * 4)) == list(range(4))


STEPS, SLOW, QUICK = 10, 0.1, 0.02
"""The last two: seconds."""


def after(call, batch):
    """The batch, once `call` has returned; it is called when all of the batch is there."""
    with tf.control_dependencies(batch):
        called = tf.numpy_function(call, [], [])
    with tf.control_dependencies([called]):
        return Batch(*(tf.ensure_shape(tf.identity(part), part.shape) for part in batch))


class IdleSteps:
    """What the loop asks of step functions: a step calls `work`, and trains nothing."""

    def __init__(self, training, work):
        self.metrics, self.training, self.work = ACOUSTIC, training, work
        self.step = tf.Variable(0, dtype=tf.int64)

    def gradients(self, bucket, batch):
        return [after(self.work, batch).mel_length]

    @tf.function
    def apply(self, frames, rate, total):
        with tf.control_dependencies(total):
            self.step.assign_add(1)
            return tf.one_hot(ACOUSTIC.step.index("useful_frames"), len(ACOUSTIC.step)) * tf.cast(frames, tf.float32)


@pytest.fixture
def loop_of(make_plan, tmp_path, monkeypatch):
    """`loop_of(read, work)`: (a loop whose pipelines call `read` for a batch and whose steps call `work`, these)."""

    def make(read, work):
        def batches(bucket, consumed, rows):
            options = tf.data.Options()
            options.experimental_optimization.inject_prefetch = False  # every read is waited for
            return training_batches(bucket, consumed, rows).map(lambda batch: after(read, batch)).with_options(options)

        monkeypatch.setattr(loop_module, "training_batches", batches)
        plan = make_plan(tmp_path)
        position = Position(epoch=tf.Variable(0, dtype=tf.int64), consumed=tf.Variable(np.zeros(2, np.int64)))
        steps = IdleSteps(plan.config.training, work)
        return TrainingLoop(training_buckets(plan.cache, plan.spec, plan.config), [steps], position), steps

    return make


def test_a_step_that_fails_leaves_the_position_of_the_one_before(loop_of):
    """As steps do when another process has ended."""
    begun = itertools.count(1)

    def fail_at_the_third():
        if next(begun) == 3:
            raise ValueError("Socket closed")

    loop, steps = loop_of(lambda: None, fail_at_the_third)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Socket closed"):
        loop.run(9)
    sizes = [bucket.batch_size for bucket in loop.buckets]
    for done in (2, 3):
        assert loop.last_whole_step() == done
        assert (loop.position.consumed.numpy() / sizes).sum() == done, "the next batch is still to come"
        steps.step.assign_add(1)  # as by a step whose metrics did not arrive


def test_the_wait_for_a_slow_pipeline_and_the_time_outside_the_loop_are_reported(loop_of, monkeypatch):
    """By a clock that stands still but in reads and steps, since how long these take is the machine's affair."""
    clock = SimpleNamespace(now=0.0)

    def passing(seconds):
        def wait():
            clock.now += seconds

        return wait

    read_clock = lambda: tf.ensure_shape(tf.numpy_function(lambda: clock.now, [], tf.float64), [])  # noqa: E731
    monkeypatch.setattr(tf, "timestamp", read_clock)
    monkeypatch.setattr(loop_module, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    loop, _ = loop_of(passing(SLOW), passing(QUICK))
    for _ in range(2):
        result = loop.run(1)
    assert result.wall == pytest.approx(SLOW + QUICK)
    assert result.seconds == pytest.approx(np.array([[0.0, SLOW, QUICK]]))
    about = {"first_step": 1, "metrics": ACOUSTIC, "traces": 2, "epoch": 0}
    rows = Chunk(result=result, outside_seconds=3 * result.wall, **about).rows()
    assert means(rows)["input_wait_share"] == pytest.approx(SLOW / (SLOW + QUICK))
    assert means(rows)["outside_share"] == pytest.approx(0.75)
    assert rows[0]["useful_frames"] > 0
    assert means(rows)["useful_frames_per_second"] == pytest.approx(rows[0]["useful_frames"] / result.wall)


def test_the_next_batch_is_read_while_a_step_runs_and_no_more_than_that(loop_of):
    """A loop that reads a batch only after the step before it would never end: a step waits for the next one's."""
    batches, begun, ahead = threading.Semaphore(0), [], []

    def wait_for_the_next_batch():
        begun.append(step := len(begun) + 1)
        for _ in range(1 + (step == 1) - (step == STEPS)):
            batches.acquire()
        ahead.append((batches.acquire(timeout=QUICK), begun[-1] - step))  # one more, if the loop goes that far

    loop, _ = loop_of(batches.release, wait_for_the_next_batch)
    assert len(loop.run(STEPS).metrics) == STEPS
    assert ahead == [(False, 0)] * STEPS, "another batch, other steps"
