"""Where the time of a call goes: the wait for a batch, the step, the loop's own work. Each is made slow and seen."""

import functools
import threading
import time
from unittest.mock import patch

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.data.batch import Batch
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.doctor.checks.steps import StepTimes, input_wait
from xtts.trainer.engine import training_loop as loop_module
from xtts.trainer.engine.training_loop import TrainingLoop
from xtts.trainer.reporting.live_panel import means
from xtts.trainer.reporting.reporter import StepRows

SLEEP = 0.1
STEPS = 12


def sleep_before(batch):
    with tf.control_dependencies([tf.numpy_function(lambda: time.sleep(SLEEP), [], [])]):
        return Batch(*(tf.ensure_shape(tf.identity(part), part.shape) for part in batch))


@pytest.fixture(scope="module")
def loop_of(trainer):
    """`loop_of(slow)`: a loop over the micro model's steps; with `slow` its pipelines sleep before every batch."""

    @functools.cache  # tracing a loop takes seconds
    def make(slow):
        def batches(bucket, consumed):
            ahead = training_batches(bucket, consumed)
            if not slow:
                return ahead
            options = tf.data.Options()
            options.experimental_optimization.inject_prefetch = False  # every sleep is waited for
            return ahead.map(sleep_before).with_options(options)

        with patch.object(loop_module, "training_batches", batches):
            loop = TrainingLoop(trainer.loop.buckets, trainer.plan.config.data, trainer.steps, trainer.state.position)
        loop.run(4)  # opens the pipelines
        return loop

    return make


def test_a_slow_pipeline_is_reported_with_its_share_and_named_by_the_doctor(loop_of):
    loop = loop_of(slow=True)
    result = loop.run(STEPS)
    assert result.wait_seconds.sum() == pytest.approx(STEPS * SLEEP, rel=0.1)
    computing = result.wall - result.wait_seconds.sum()
    share = STEPS * SLEEP / (STEPS * SLEEP + computing)
    rows = StepRows(first_step=1, result=result, outside_seconds=0.0, traces=2, epoch=0).rows()
    assert means(rows)["input_wait_share"] == pytest.approx(share, rel=0.1)
    frames = sum(row["useful_frames"] for row in rows)
    assert means(rows)["useful_frames_per_second"] == pytest.approx(frames / result.wall, rel=0.1)
    times = StepTimes(
        compile_seconds=0.0, seconds=result.seconds, places=result.buckets, useful_frames=frames, entry_seconds=0.0,
        traces=2,
    )  # fmt: skip
    [finding] = input_wait(times)[1]
    reported = float(finding.what.removeprefix("steps wait ").partition("%")[0]) / 100
    assert reported == pytest.approx(share, abs=0.1 * share)


def test_wait_step_and_rest_are_the_wall_time_of_the_call(loop_of):
    for slow in (True, False):
        result = loop_of(slow=slow).run(10 * STEPS if not slow else STEPS)
        assert (result.seconds >= 0).all()
        assert result.seconds.sum() == pytest.approx(result.wall, rel=0.02)
        waiting = result.wait_seconds.sum() / result.wall
        assert waiting > 0.5 if slow else waiting < 0.5


def test_a_slow_step_is_a_step_and_no_wait(loop_of, monkeypatch):
    loop = loop_of(slow=False)
    fast, train = loop.run(STEPS), loop._steps.train

    def slow_train(bucket, batch):
        with tf.control_dependencies([tf.numpy_function(lambda: time.sleep(SLEEP), [], [])]):
            return train(bucket, Batch(*map(tf.identity, batch)))

    monkeypatch.setattr(loop._steps, "train", slow_train)
    monkeypatch.setattr(loop, "_run", tf.function(loop._run_batches, input_signature=[tf.TensorSpec([], tf.int32)]))
    slow = loop.run(STEPS)
    assert slow.seconds[:, 2].sum() - fast.seconds[:, 2].sum() == pytest.approx(STEPS * SLEEP, rel=0.3)
    assert slow.wait_seconds.sum() < 0.1 * STEPS * SLEEP


def test_time_outside_the_loop_is_a_column(loop_of):
    result = loop_of(slow=False).run(STEPS)
    inside = result.seconds.sum()
    rows = StepRows(first_step=1, result=result, outside_seconds=3 * inside, traces=2, epoch=0).rows()
    assert means(rows)["outside_share"] == pytest.approx(0.75)
    none = StepRows(first_step=1, result=result, outside_seconds=0.0, traces=2, epoch=0).rows()
    assert np.allclose([row["outside_share"] for row in none], 0.0)


def test_a_stop_takes_effect_within_one_step(loop_of, trainer):
    loop, set_at = loop_of(slow=True), []

    def ask():
        time.sleep(3.5 * SLEEP)
        loop.stop.assign(True)
        set_at.append(time.perf_counter())

    steps = int(trainer.state.step.numpy())
    thread = threading.Thread(target=ask)
    thread.start()
    result = loop.run(1000)
    ended = time.perf_counter()
    thread.join()
    assert ended - set_at[0] < 2 * SLEEP
    done = len(result.metrics)
    assert 1 <= done <= 5
    assert all(len(part) == done for part in (result.seconds, result.buckets, result.offsets))
    assert int(trainer.state.step.numpy()) == steps + done
    assert len(loop.run(3).metrics) == 3  # the next call does not remember it
