"""Where the time of a call goes: the wait for a batch, the step, the loop's own work. Each is made slow and seen."""

import functools
import time

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.data.batch import Batch
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.engine import training_loop as loop_module
from xtts.trainer.engine.metrics import TRAIN_METRICS
from xtts.trainer.engine.training_loop import Position, TrainingLoop
from xtts.trainer.reporting.reporter import Chunk, means

STEPS, SLOW, QUICK = 10, 0.1, 0.02
"""The last two: seconds."""


def sleep(seconds, after):
    """An op that takes so long."""
    with tf.control_dependencies(after):
        return tf.numpy_function(lambda: time.sleep(seconds), [], [])


class SleepingSteps:
    """What the loop asks of steps (`LoopSteps`): each takes its time, and trains nothing."""

    def __init__(self, training, seconds):
        self.training, self._seconds = training, seconds
        self.step = tf.Variable(0, dtype=tf.int64)

    def gradients(self, bucket, batch):
        with tf.control_dependencies([sleep(self._seconds, batch)]):
            return [tf.identity(batch.mel_length)]

    @tf.function
    def apply(self, frames, rate, total):
        with tf.control_dependencies(total):
            self.step.assign_add(1)
            return tf.one_hot(TRAIN_METRICS.index("useful_frames"), len(TRAIN_METRICS)) * tf.cast(frames, tf.float32)


def sleep_before(batch, seconds):
    with tf.control_dependencies([sleep(seconds, [])]):
        return Batch(*(tf.ensure_shape(tf.identity(part), part.shape) for part in batch))


@pytest.fixture
def loop_of(make_plan, tmp_path, monkeypatch):
    """`loop_of(waiting, stepping)`: a loop whose pipelines and steps take so many seconds for a batch."""

    def make(waiting, stepping):
        def batches(bucket, consumed, rows):
            options = tf.data.Options()
            options.experimental_optimization.inject_prefetch = False  # every sleep is waited for
            slowed = training_batches(bucket, consumed, rows).map(functools.partial(sleep_before, seconds=waiting))
            return slowed.with_options(options)

        monkeypatch.setattr(loop_module, "training_batches", batches)
        plan = make_plan(tmp_path)
        position = Position(epoch=tf.Variable(0, dtype=tf.int64), consumed=tf.Variable(np.zeros(2, np.int64)))
        steps = [SleepingSteps(plan.config.training, stepping)]
        loop = TrainingLoop(training_buckets(plan.cache, plan.spec, plan.config), steps, position)
        loop.run(2)  # opens the pipelines
        return loop

    return make


def rows_of(result, **options):
    return Chunk(
        **{"first_step": 1, "result": result, "outside_seconds": 0.0, "traces": 2, "epoch": 0, **options}
    ).rows()


def test_a_slow_pipeline_is_reported_with_its_share(loop_of):
    result = loop_of(waiting=SLOW, stepping=QUICK).run(STEPS)
    assert result.seconds.sum() == pytest.approx(result.wall, rel=0.05)
    assert np.median(result.wait_seconds) == pytest.approx(SLOW, rel=0.3)
    share = result.wait_seconds.sum() / result.wall
    rows = rows_of(result)
    assert means(rows)["input_wait_share"] == pytest.approx(share, rel=0.1)
    frames = sum(row["useful_frames"] for row in rows)
    assert frames > 0
    assert means(rows)["useful_frames_per_second"] == pytest.approx(frames / result.wall, rel=0.1)


def test_a_slow_step_is_a_step_and_no_wait_and_time_outside_the_loop_is_a_column(loop_of):
    result = loop_of(waiting=0.0, stepping=SLOW).run(STEPS)
    assert np.median(result.seconds[:, 2]) == pytest.approx(SLOW, rel=0.3)  # a busy machine makes single ones long
    assert np.median(result.wait_seconds) < 0.1 * SLOW
    outside = rows_of(result, outside_seconds=3 * result.seconds.sum())
    assert means(outside)["outside_share"] == pytest.approx(0.75)
    assert np.allclose([row["outside_share"] for row in rows_of(result)], 0.0)
