"""Compiled steps contain no setting of the schedule, so that the tests' runs share them."""

from dataclasses import replace

import pytest
import tensorflow as tf
from graph_walk import walk
from kept_steps import KEPT_STEPS, SCHEDULE, KeptSteps, trace_replicas

from xtts.trainer.data.training_bucket import training_buckets

OTHER = {
    "seed": 7, "steps": 77, "epochs": None, "patience": 3, "learning_rate": 0.5, "warmup_fraction": 0.5,
    "decay_fraction": 0.5, "final_learning_rate_share": 0.5, "max_bad_steps": 7, "steps_per_call": 7, "log_every": 7,
    "validate_every": 7, "samples_every": 7, "sample_sentences": 7, "samples_heard": 7, "checkpoint_every": 7,
    "keep_checkpoints": 7,
}  # fmt: skip


def operations(traced):
    """Type and constant of every operation of the training steps and the update."""
    steps = traced[0].step_functions
    functions = [steps.update, *steps.gradient_steps.values()]
    graphs = [step.get_concrete_function().graph for step in functions]
    constants = ("Const",)
    return [
        (op.type, tf.make_ndarray(op.get_attr("value")).tobytes() if op.type in constants else b"")
        for graph in graphs for op in walk(graph)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def ended(make_plan, run_settings, run_train, one_shape_cache, tmp_path_factory):
    """(plan, buckets, steps) of a run that has ended; the steps are kept."""
    folder = tmp_path_factory.mktemp("ended")
    plan = make_plan(folder / "run", *run_settings, cache=one_shape_cache)
    buckets = training_buckets(plan.cache, plan.spec, plan.config)
    assert run_train(folder / "first", "training.steps=1")[0] == 0
    replicas = KEPT_STEPS.take(buckets, plan.config)
    assert KEPT_STEPS.take(buckets, plan.config) is None
    KEPT_STEPS.keep(replicas, buckets, plan.config)
    return plan, buckets, replicas


@pytest.mark.long
def test_no_setting_of_the_schedule_is_in_a_compiled_step(ended):
    plan, _, replicas = ended
    assert OTHER.keys() == SCHEDULE
    training = plan.config.training.model_copy(update=OTHER)
    config = plan.config.model_copy(update={"training": training})
    other = trace_replicas(training_buckets(plan.cache, plan.spec, config), plan.kind, config)
    assert operations(other) == operations(replicas)


@pytest.mark.long
def test_another_run_takes_the_steps_and_leaves_them(ended, run_train, tmp_path):
    plan, buckets, before = ended
    assert run_train(tmp_path / "run", "training.steps=2", "training.seed=3")[0] == 0
    after = KEPT_STEPS.take(buckets, plan.config)
    assert after[0].step_functions is before[0].step_functions
    KEPT_STEPS.keep(after, buckets, plan.config)


def test_another_model_and_another_cache_have_their_own_steps(make_plan, tmp_path):
    plans = [make_plan(tmp_path / "run", f"training.clip_norm={norm}") for norm in (1, 2)]
    buckets = training_buckets(plans[0].cache, plans[0].spec, plans[0].config)
    kept, steps = KeptSteps(), [object()]
    kept.keep(steps, buckets, plans[0].config)
    assert kept.take(buckets, plans[1].config) is None
    other = replace(buckets[0], spec=buckets[0].spec.model_copy(update={"fingerprint": "another cache"}))
    assert kept.take([other], plans[0].config) is None
    assert kept.take(buckets, plans[0].config) is steps
