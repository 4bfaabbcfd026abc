"""The decoder of several frame rates: what a frame sees. The post-filter: what it makes stronger. Solvers."""

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.integrate import solve_ivp

from xtts.shared.config_files import load_config
from xtts.trainer.models.acoustic.networks import Conditioning, FlowDecoder, Vocabularies, postfilter, solve
from xtts.trainer.models.layers import Initialization
from xtts.trainer.speech.synthesis_options import evaluations_per_step, sampling_schedule

CHANNELS = 6
QUARTER = "{rate: 4, width: 16, blocks: 1, heads: 2, expansion: 2}"
HALF = "{rate: 2, width: 12, blocks: 2, heads: 0, expansion: 2}"
LEVELS = {"one-rate": [], "quarter": [QUARTER], "half-and-quarter": [HALF, QUARTER.replace("4", "2", 1)]}


def build(levels):
    """A decoder whose gates are open."""
    sets = [
        "model.text_width=8", "model.text_heads=2", "model.decoder_width=8", "model.decoder_blocks=2",
        f"model.decoder_levels=[{', '.join(LEVELS[levels])}]",
    ]
    config = load_config("tiny", assignments=sets).model
    initial = Initialization(itertools.count(), keras.DTypePolicy("float32"))
    decoder = FlowDecoder(config, CHANNELS, Vocabularies(1), initial)
    decoder.build()
    for i, weight in enumerate(decoder.trainable_variables):
        weight.assign_add(0.1 * tf.random.stateless_normal(weight.shape, [5, i]))
    return decoder


def output(decoder, noisy):
    """The field of a clip of 83 frames."""
    encodings, durations = tf.random.stateless_normal([1, 5, 8], [1, 1]), tf.constant([[3, 4, 2, 5, 69]])
    _, text = decoder.regulate_length(encodings, tf.zeros([1, 5, CHANNELS]), durations, 83)
    condition = decoder.condition(tf.constant([0.3]), Conditioning())
    return decoder(tf.constant(noisy), text, tf.ones([1, 83, 1], tf.bool), condition).numpy()


@pytest.mark.parametrize(("levels", "sees_all"), [("one-rate", False), ("quarter", True), ("half-and-quarter", True)])
def test_with_attention_every_frame_sees_every_other(levels, sees_all):
    decoder, noise = build(levels), np.random.default_rng(3).normal(size=[1, 83, CHANNELS]).astype(np.float32)
    changed = noise.copy()
    changed[0, 0] += 1.0
    apart = np.abs(output(decoder, changed) - output(decoder, noise)).max(axis=-1)[0]
    assert apart[0] > 1e-3
    assert (apart[-1] > 1e-7) == sees_all


def cosine(coefficient, channels):
    """One coefficient of the cepstrum of M channels."""
    return np.cos(np.pi * coefficient * (np.arange(channels) + 0.5) / channels)


@pytest.mark.parametrize("channels", [80, 100])
@pytest.mark.parametrize(("coefficient", "gain"), [(0, 1.0), (1, 1.0), (4, 1.0), (8, 1.05), (12, 1.1), (79, 1.1)])
def test_only_the_higher_coefficients_become_larger(coefficient, gain, channels):
    shape = cosine(coefficient, channels)
    np.testing.assert_allclose(shape @ postfilter(channels), gain * shape, atol=1e-5)


def error(solver, steps):
    """Of dx/dt = x cos(4 t) + t."""
    exact = solve_ivp(lambda t, x: x * math.cos(4 * t) + t, (0, 1), [1.0], rtol=1e-10, atol=1e-12).y[0, -1]
    schedule = tf.constant(sampling_schedule(steps * evaluations_per_step(solver), solver))
    end = solve(lambda x, i: x * tf.cos(4 * schedule[i, 0]) + schedule[i, 0], tf.constant([1.0]), schedule)
    return abs(float(end[0]) - exact)


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("midpoint", 2)])
def test_the_error_falls_with_the_order_of_the_solver(solver, order):
    ratio = error(solver, 16) / error(solver, 32)
    assert 2**order * 0.8 < ratio < 2**order * 1.25
