"""Compiled steps that a run leaves to the next one of the same process."""

from dataclasses import replace

import pytest
import tensorflow as tf
from graph_walk import walk

from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.loop.replicas import SCHEDULE, STEP_CACHE, Replicas, StepCache, trace_replicas

STEPS = Replicas(replicas=())
OTHER = {
    "seed": 7, "steps": 77, "epochs": None, "patience": 3, "learning_rate": 0.5, "warmup_fraction": 0.5,
    "decay_fraction": 0.5, "final_learning_rate_share": 0.5, "max_bad_steps": 7, "steps_per_call": 7, "log_every": 7,
    "validate_every": 7, "samples_every": 7, "sample_sentences": 7, "samples_heard": 7, "checkpoint_every": 7,
    "keep_checkpoints": 7,
}  # fmt: skip


def operations(traced):
    """Type and constant of every operation of the training steps and the update."""
    functions = [traced.step_functions.update, *traced.step_functions.gradient_steps.values()]
    graphs = [step.get_concrete_function().graph for step in functions]
    constants = ("Const",)
    return [
        (op.type, tf.make_ndarray(op.get_attr("value")).tobytes() if op.type in constants else b"")
        for graph in graphs for op in walk(graph)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def ended(make_plan, run_settings, run_train, one_shape_cache, tmp_path_factory):
    """(plan, buckets, steps) of a run that has ended; the steps are in the cache."""
    folder = tmp_path_factory.mktemp("ended")
    plan = make_plan(folder / "run", *run_settings, cache=one_shape_cache)
    buckets = training_buckets(plan.cache, plan.spec, plan.config)
    assert run_train(folder / "first", "training.steps=1")[0] == 0
    replicas = STEP_CACHE.take(buckets, plan.config)
    assert STEP_CACHE.take(buckets, plan.config) is None
    STEP_CACHE.keep(replicas, buckets, plan.config)
    return plan, buckets, replicas


@pytest.mark.long
def test_no_setting_of_the_schedule_is_in_a_compiled_step(ended):
    plan, _, replicas = ended
    assert OTHER.keys() == SCHEDULE
    training = plan.config.training.model_copy(update=OTHER)
    config = plan.config.model_copy(update={"training": training})
    other = trace_replicas(training_buckets(plan.cache, plan.spec, config), config)
    assert operations(other) == operations(replicas)


@pytest.mark.long
def test_another_run_takes_the_steps_and_leaves_them(ended, run_train, tmp_path):
    plan, buckets, before = ended
    assert run_train(tmp_path / "run", "training.steps=2", "training.seed=3")[0] == 0
    after = STEP_CACHE.take(buckets, plan.config)
    assert after.step_functions is before.step_functions
    STEP_CACHE.keep(after, buckets, plan.config)


def test_the_oldest_steps_are_dropped_and_another_cache_has_its_own(make_plan, tmp_path):
    plans = [make_plan(tmp_path / "run", f"training.clip_norm={norm}") for norm in (1, 2)]
    cache, buckets = StepCache(most=1), training_buckets(plans[0].cache, plans[0].spec, plans[0].config)
    for plan in plans:
        cache.keep(STEPS, buckets, plan.config)
    assert cache.take(buckets, plans[0].config) is None
    other = replace(buckets[0], spec=buckets[0].spec.model_copy(update={"fingerprint": "another cache"}))
    assert cache.take([other], plans[1].config) is None
    assert cache.take(buckets, plans[1].config) is not None
