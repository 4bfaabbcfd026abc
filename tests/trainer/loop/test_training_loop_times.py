"""Where the time of a call goes: the wait for a batch, the step, the loop's own work; and what no step waits for."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.data.batch import Batch
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.loop import training_loop as loop_module
from xtts.trainer.loop.chunk import Chunk
from xtts.trainer.loop.metrics import ACOUSTIC
from xtts.trainer.loop.training_loop import Position, TrainingLoop
from xtts.trainer.reporting.reporter import means

STEPS, SLOW, QUICK = 10, 0.1, 0.02
"""The last two: seconds."""


def after(call, batch):
    """The batch, once `call` has returned; it is called when the whole batch has arrived."""
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
    """`loop_of(read, work)`: a loop whose pipelines call `read` for a batch, and whose steps call `work`."""

    def make(read, work):
        def batches(bucket, consumed, rows):
            options = tf.data.Options()
            options.experimental_optimization.inject_prefetch = False  # every read is waited for
            return training_batches(bucket, consumed, rows).map(lambda batch: after(read, batch)).with_options(options)

        monkeypatch.setattr(loop_module, "training_batches", batches)
        plan = make_plan(tmp_path)
        position = Position(epoch=tf.Variable(0, dtype=tf.int64), consumed=tf.Variable(np.zeros(2, np.int64)))
        steps = IdleSteps(plan.config.training, work)
        return TrainingLoop(training_buckets(plan.cache, plan.spec, plan.config), [steps], position)

    return make


def test_the_wait_for_a_slow_pipeline_and_the_time_outside_the_loop_are_reported_with_their_shares(
    loop_of, monkeypatch
):
    """By a clock that stands still but in reads and steps, since how long these take is the machine's affair."""
    clock = SimpleNamespace(now=0.0)

    def passing(seconds):
        def wait():
            clock.now += seconds

        return wait

    read_clock = lambda: tf.ensure_shape(tf.numpy_function(lambda: clock.now, [], tf.float64), [])  # noqa: E731
    monkeypatch.setattr(tf, "timestamp", read_clock)
    monkeypatch.setattr(loop_module, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    loop = loop_of(passing(SLOW), passing(QUICK))
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


class Meeting:
    """A step ends only once the loop has begun to read the batch of the next."""

    def __init__(self):
        self._changed = threading.Condition()
        self.begun, self.read, self.furthest = 0, 0, 0

    def read_batch(self):
        with self._changed:
            self.read += 1
            self._changed.notify_all()

    def meet(self):
        with self._changed:
            self.begun += 1
            wanted = min(self.begun + 1, STEPS)
            self._changed.wait_for(lambda: self.read >= wanted)
            self._changed.wait_for(lambda: self.read > wanted, QUICK)  # one more, if the loop goes that far
            self.furthest = max(self.furthest, self.read - self.begun)


def test_the_next_batch_is_read_while_a_step_runs_and_no_more_than_that(loop_of):
    """Each side waits for the other: a loop that reads a batch only after the step before it would never end."""
    meeting = Meeting()
    result = loop_of(meeting.read_batch, meeting.meet).run(STEPS)
    assert len(result.metrics) == meeting.begun == STEPS
    assert meeting.furthest == 1
