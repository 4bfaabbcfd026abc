"""The validation loss belongs to the cache: no batch size, row or padding row moves it."""

import numpy as np
import pytest
import tensorflow as tf
from one_bucket import one_bucket
from scipy.special import logit
from scipy.stats import norm

from xtts.trainer.data.batch import Batch
from xtts.trainer.loop import train_step
from xtts.trainer.loop.train_step import StepFunctions
from xtts.trainer.loop.validation_loop import ValidationLoop
from xtts.trainer.models.acoustic.objective import ACOUSTIC, AcousticObjective


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
