"""Compiled steps contain no setting of the schedule, so that the tests' runs share them."""

from dataclasses import replace

import pytest
import tensorflow as tf
from graph_walk import walk
from kept_steps import SCHEDULE, KeptSteps, trace_replicas

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


@pytest.mark.long
def test_no_setting_of_the_schedule_is_in_a_compiled_step(make_plan, run_settings, one_shape_cache, tmp_path):
    assert OTHER.keys() == SCHEDULE
    plan = make_plan(tmp_path / "run", *run_settings, cache=one_shape_cache)
    other = plan.config.model_copy(update={"training": plan.config.training.model_copy(update=OTHER)})
    one, another = (
        operations(trace_replicas(training_buckets(plan.cache, plan.spec, config), plan.kind, config))
        for config in (plan.config, other)
    )
    assert one == another


def test_another_model_and_another_cache_have_their_own_steps(make_plan, tmp_path):
    plans = [make_plan(tmp_path / "run", f"training.clip_norm={norm}") for norm in (1, 2)]
    buckets = training_buckets(plans[0].cache, plans[0].spec, plans[0].config)
    kept, steps = KeptSteps(), [object()]
    kept.keep(steps, buckets, plans[0].config)
    assert kept.take(buckets, plans[1].config) is None
    other = replace(buckets[0], spec=buckets[0].spec.model_copy(update={"fingerprint": "another cache"}))
    assert kept.take([other], plans[0].config) is None
    assert kept.take(buckets, plans[0].config) is steps
