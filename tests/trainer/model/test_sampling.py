"""Solvers, and classifier-free guidance from training to synthesis."""

import inspect
import math

import numpy as np
import pytest
import tensorflow as tf
from four_clips import CHANNELS, EULER, clips, losses, moved, small_model
from scipy.integrate import solve_ivp

from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.model.conditioning import Conditioning, drop_conditions
from xtts.trainer.model.decoder import FlowDecoder
from xtts.trainer.model.sampling import Sampling, solve
from xtts.trainer.model.sampling_schedule import SOLVERS, evaluations_per_step, sampling_schedule
from xtts.trainer.serve.cli import main
from xtts.trainer.synth import evaluate_checkpoint, load_voice

MOST_CLIPS = tf.zeros([4000], tf.int32)
SPEAKERS = {"speaker": tf.constant([0, 2, 1, 2]), "language": tf.constant([1, 0, 0, 1])}


def error(solver, steps):
    """Of dx/dt = x cos(4 t) + t."""
    exact = solve_ivp(lambda t, x: x * math.cos(4 * t) + t, (0, 1), [1.0], rtol=1e-10, atol=1e-12).y[0, -1]
    schedule = sampling_schedule(steps * evaluations_per_step(solver), solver)
    end = solve(lambda x, t: x * tf.cos(4 * t) + t, tf.constant([1.0]), tf.constant(schedule))
    return abs(float(end[0]) - exact)


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("midpoint", 2)])
def test_the_error_falls_with_the_order_of_the_solver(solver, order):
    ratio = error(solver, 16) / error(solver, 32)
    assert 2**order * 0.8 < ratio < 2**order * 1.25


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_schedule_counts_evaluations_and_goes_from_0_to_1(solver):
    schedule = sampling_schedule(6, solver)
    assert (schedule.shape, schedule.dtype) == ((6, 3), np.float32)
    assert schedule[:, 1].sum() == pytest.approx(1.0)
    assert schedule[0, 0] == 0.0
    assert schedule[-1, 2] == 0.0, "nothing is evaluated after the last"
    assert ((schedule[:, 0] >= 0) & (schedule[:, 0] <= 1)).all()


@pytest.mark.parametrize("name", ["speak", "evaluate", "export", "serve"])
def test_the_commands_and_the_library_have_the_same_defaults(name):
    fields = vars(SynthesisOptions())
    for option in main.commands[name].params:
        if option.name in fields:
            default = option.default[0] if option.multiple else option.default
            assert default == fields[option.name], option.name
    for function in (load_voice, evaluate_checkpoint):
        for field, value in inspect.signature(function).parameters.items():
            assert field not in fields or value.default == fields[field], field


class LinearField:
    """dx/dt = c - x with c = 3, and 1 under the null condition."""

    solve = FlowDecoder.solve

    def condition(self, time, conditioning):
        return tf.where(conditioning.dropped, 1.0, 3.0) + 0.0 * time

    def __call__(self, mel, text, valid, condition):
        return condition[:, tf.newaxis, tf.newaxis] - mel


def test_guidance_moves_a_linear_field_away_from_the_null_condition():
    schedule = tf.constant(sampling_schedule(200, "midpoint"))
    sampling = Sampling(schedule, tf.constant(2.0), copies=2)
    ids = tf.zeros([2, 3], tf.int32)
    _, _, conditioning = sampling.with_null(ids, tf.constant([3, 2]), Conditioning(speaker=tf.constant([0, 1])))
    start = tf.constant(np.arange(8, dtype=np.float32).reshape(2, 4, 1))
    end = LinearField().solve(start, tf.zeros([4, 4, 1]), tf.ones([2, 4, 1], tf.bool), conditioning, sampling)
    # dx/dt = 3 - x + 2 ((3 - x) - (1 - x)) = 7 - x
    np.testing.assert_allclose(end, 7.0 + (start - 7.0) * math.exp(-1.0), rtol=1e-4)


def test_guidance_changes_the_mel_but_not_the_durations():
    model = moved(small_model(speakers=3, languages=2, seed=22))
    ids, _, token_length, *_ = clips()

    def speak(sampling):
        noise = tf.random.stateless_normal([4, 64, CHANNELS], [1, 2])
        options = {"noise": noise, "temperature": 0.7, "speed": 1.0, "conditioning": Conditioning(**SPEAKERS)}
        mel, _, durations = model.generate(ids, token_length, sampling=sampling, **options)
        return mel.numpy(), durations.numpy()

    plain, *guided = map(speak, [EULER, *(Sampling(EULER.schedule, tf.constant(x), 2) for x in (0.0, 1.0, 3.0))])
    assert all((durations == plain[1]).all() for _, durations in guided)
    far = [np.abs(mel - plain[0]).mean() for mel, _ in guided]
    assert far[0] < 1e-5
    assert 1e-3 < far[1] < far[2]


def dropped_rows(rate, seed, batch=MOST_CLIPS):
    return drop_conditions(Conditioning(), rate, batch, tf.constant(seed)).dropped.numpy()


def test_the_share_of_dropped_clips_is_the_rate_and_the_seed_draws_them():
    drawn = [dropped_rows(0.1, [3, i]) for i in range(2)]
    assert all(abs(dropped.mean() - 0.1) < 0.02 for dropped in drawn)
    assert (drawn[0] != drawn[1]).any()
    np.testing.assert_array_equal(dropped_rows(0.1, [3, 0]), drawn[0])
    np.testing.assert_array_equal(dropped_rows(0.1, [3, 0], MOST_CLIPS[:70]), drawn[0][:70])
    assert drop_conditions(Conditioning(), 0.5, MOST_CLIPS, None).dropped is None
    assert small_model().condition_dropout == 0.0, "one voice and one language"
    assert small_model(speakers=2).condition_dropout == small_model(languages=2).condition_dropout == 0.1
    assert drop_conditions(Conditioning(), 0.0, MOST_CLIPS, tf.constant([1, 2])).dropped is None


def test_a_dropped_clip_is_one_of_no_speaker_and_no_language():
    model = moved(small_model(speakers=3, languages=2, condition_dropout=0.999999, dropout=0.0, seed=23))
    seed, rows = tf.constant([1, 2]), ({**SPEAKERS}, {name: part[::-1] for name, part in SPEAKERS.items()})
    first, second = (losses(model, *clips(), dropout_seed=seed, **some)[0] for some in rows)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    for weight in model.trainable_variables:
        if "/speakers/" in weight.path or "/languages/" in weight.path:
            weight.assign(tf.zeros_like(weight))
    without = losses(model, *clips(), **SPEAKERS)[0]
    for name in first:
        np.testing.assert_allclose(first[name], without[name], rtol=1e-6)
