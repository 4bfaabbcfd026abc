"""Where the time of a call goes: the wait for a batch, the step, the loop's own work. Each is made slow and seen.

By a clock that stands still but where a test moves it, since the time of a step depends on the machine.
"""

import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.config_files import load_config
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


class Clock:
    """Seconds that pass only in steps and reads, which begin once all earlier steps are recorded."""

    def __init__(self):
        self.now, self._stamps, self._recorded = 0.0, 0, 0
        self._changed = threading.Condition()

    def timestamp(self):
        """Stands for `tf.timestamp`: the loop asks at its start, and then, a turn, drawn, read and recorded."""
        self._stamps += 1
        read_clock = self._record if self._stamps == 4 else lambda: self.now
        return tf.ensure_shape(tf.numpy_function(read_clock, [], tf.float64), [])

    def _record(self):
        with self._changed:
            self._recorded += 1
            self._changed.notify_all()
            return self.now

    def passing(self, seconds):
        """What a step or a read calls for each batch."""
        batches = itertools.count()

        def wait_and_pass():
            with self._changed:
                earlier = next(batches)
                self._changed.wait_for(lambda: self._recorded >= earlier)
                self.now += seconds

        return wait_and_pass


class TimedStepFunctions:
    """What the loop asks for: each takes its time, and trains nothing."""

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
    """`loop_of()`: a loop whose pipelines take `SLOW` seconds and whose steps `QUICK` ones, or as `meeting` has it."""

    def make(meeting=None):
        clock = Clock()
        read = meeting.read_batch if meeting else clock.passing(SLOW)

        def batches(bucket, consumed, rows):
            options = tf.data.Options()
            options.experimental_optimization.inject_prefetch = False  # every read is waited for
            slowed = training_batches(bucket, consumed, rows).map(lambda batch: after(read, batch))
            return slowed.with_options(options)

        monkeypatch.setattr(loop_module, "training_batches", batches)
        if meeting is None:
            monkeypatch.setattr(tf, "timestamp", clock.timestamp)
            monkeypatch.setattr(loop_module, "time", SimpleNamespace(perf_counter=lambda: clock.now))
        plan = make_plan(tmp_path)
        position = Position(epoch=tf.Variable(0, dtype=tf.int64), consumed=tf.Variable(np.zeros(2, np.int64)))
        used = [meeting or TimedStepFunctions(plan.config.training, clock.passing(QUICK))]
        loop = TrainingLoop(training_buckets(plan.cache, plan.spec, plan.config), used, position)
        if meeting is None:
            loop.run(2)  # opens the pipelines
        return loop

    return make


def test_the_wait_for_a_slow_pipeline_and_the_time_outside_the_loop_are_reported_with_their_shares(loop_of):
    result = loop_of().run(STEPS)
    assert result.wall == pytest.approx(STEPS * (SLOW + QUICK))
    assert result.seconds == pytest.approx(np.tile([0.0, SLOW, QUICK], (STEPS, 1)))
    about = {"first_step": 1, "metrics": ACOUSTIC, "traces": 2, "epoch": 0}
    rows = Chunk(result=result, outside_seconds=3 * result.wall, **about).rows()
    assert means(rows)["input_wait_share"] == pytest.approx(SLOW / (SLOW + QUICK))
    assert means(rows)["outside_share"] == pytest.approx(0.75)
    frames = sum(row["useful_frames"] for row in rows)
    assert frames > 0
    assert means(rows)["useful_frames_per_second"] == pytest.approx(frames / result.wall)


class MeetingStepFunctions(TimedStepFunctions):
    """A step ends only once the loop has begun to read the batch of the next."""

    def __init__(self, training, steps):
        super().__init__(training, self.meet)
        self._steps, self._changed = steps, threading.Condition()
        self.begun, self.read, self.furthest = 0, 0, 0

    def read_batch(self):
        with self._changed:
            self.read += 1
            self._changed.notify_all()

    def meet(self):
        with self._changed:
            self.begun += 1
            wanted = min(self.begun + 1, self._steps)
            self._changed.wait_for(lambda: self.read >= wanted)
            self._changed.wait_for(lambda: self.read > wanted, QUICK)  # one more, if the loop goes that far
            self.furthest = max(self.furthest, self.read - self.begun)


def test_the_next_batch_is_read_while_a_step_runs_and_no_more_than_that(loop_of):
    """Each side waits for the other: a loop that reads a batch only after the step before it would never end."""
    meeting = MeetingStepFunctions(load_config("tiny").training, STEPS)
    result = loop_of(meeting).run(STEPS)
    assert len(result.metrics) == meeting.begun == STEPS
    assert meeting.furthest == 1
