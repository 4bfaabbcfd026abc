"""The validation loss belongs to the cache: no batch size, row or blank clip moves it."""

import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.data.dataset import batch_signature
from xtts.trainer.engine.train_step import LOSSES, Steps, random_inputs
from xtts.trainer.engine.validation_loop import ValidationLoop


def validation_losses(trainer, size):
    plan, state = trainer.plan, trainer.state
    sizes = {n: size for n, bucket in enumerate(plan.spec.buckets) if bucket.clips("validation")}
    signatures = {n: batch_signature(plan.spec, plan.spec.buckets[n], size) for n in sizes}
    steps = Steps(state.model, state.optimizer, trainer.training, state.step)
    steps.trace(signatures, training=[], validation=sizes)
    losses, bad = ValidationLoop(plan.cache, plan.spec, sizes, steps, trainer.loop.stop).run()
    assert not bad
    return [losses[name] for name in LOSSES]


def test_the_loss_is_the_same_for_every_batch_size(trainer):
    clips = [bucket.clips("validation") for bucket in trainer.plan.spec.buckets]
    assert max(clips) > 1
    trained = [trainer.validation.run()[0][name] for name in LOSSES]
    for size in (1, max(clips) + 3):  # the second one is filled up with blank clips
        np.testing.assert_allclose(validation_losses(trainer, size), trained, rtol=1e-5)


def test_a_stopped_validation_gives_nothing(trainer, monkeypatch):
    monkeypatch.setattr(trainer.validation, "_stop", tf.Variable(True))
    run = tf.function(trainer.validation._sums, input_signature=[])
    _, finite, done = run()
    assert done.numpy() == 0
    assert not finite.numpy().any()


@pytest.mark.parametrize("present", [[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]])
def test_training_times_are_stratified_over_the_clips_that_are_there(present):
    lengths = tf.constant(present) * 7
    count = sum(present)
    for step in range(20):
        batch = (None, tf.zeros([4, 8, 2], tf.float16), None, lengths)
        time = random_inputs(batch, 5, tf.constant(step, tf.int64)).time.numpy()[np.array(present) > 0]
        assert sorted(np.floor(time * count)) == list(range(count))
