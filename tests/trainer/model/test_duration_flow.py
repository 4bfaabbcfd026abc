"""Durations that are drawn: what the network learns, that it is beside the others, and sums that are asked for."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from four_clips import KEYS, VOCABULARY, clips, losses, moved, sizes, small_model

from xtts.shared.config_files import load_config
from xtts.trainer.engine.optimizer import AdamW
from xtts.trainer.model.acoustic_model import NOBODY
from xtts.trainer.model.alignment import fit_durations, round_durations
from xtts.trainer.model.duration_flow import DurationFlow, Timing
from xtts.trainer.model.layers import length_mask
from xtts.trainer.model.random_numbers import random_normal
from xtts.trainer.model.weight_groups import clip_group, decays

B, L, STEPS = 32, 20, 400
MEAN, SPREAD, TEMPO = np.array([10.0, 5.0]), np.array([0.15, 0.35]), 0.12
"""Frames of the two kinds of tokens, the deviation of their logarithms, and that of a factor for the whole clip."""


def flow_alone(**changes):
    config = sizes("tiny", text_width=16, duration_width=64, **changes)
    flow = DurationFlow(config, itertools.count(5), dtype=keras.DTypePolicy("float32"))
    flow.build()
    return flow


def two_kinds(first, count=B):
    """Clips of tokens of two kinds: encodings, durations, valid, kinds."""
    rows = first + tf.range(count)
    drawn = random_normal(tf.constant([7, 1]), rows, L, 3)
    length = tf.cast(12.0 + 8.0 * tf.math.sigmoid(drawn[:, 0, 0]), tf.int32)
    valid, kind = length_mask(length, L), tf.cast(drawn[..., 1] > 0, tf.int32)
    tempo = TEMPO * random_normal(tf.constant([8, 1]), rows, 1, 1)[..., 0]
    mean, spread = (tf.gather(tf.constant(values, tf.float32), kind) for values in (MEAN, SPREAD))
    frames = tf.maximum(tf.round(mean * tf.exp(spread * drawn[..., 2] + tempo)), 1.0)
    return tf.one_hot(kind, 16), tf.where(valid[..., 0], tf.cast(frames, tf.int32), 0), valid, kind


@pytest.fixture(scope="session")
def learnt():
    """A flow that has learnt the two kinds."""
    flow = flow_alone()
    training = load_config("tiny").training
    optimizer = AdamW(flow.trainable_variables, training, decays)

    @tf.function(jit_compile=True, autograph=False)
    def step(number, rate):
        encodings, durations, valid, _ = two_kinds(number * B)
        noise = random_normal(tf.constant([9, 1]), number * B + tf.range(B), L, 2)
        time = (tf.range(B, dtype=tf.float32) + 0.5) / B
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(flow.loss(encodings, durations, valid, noise, time))
            loss /= tf.reduce_sum(tf.cast(valid, tf.float32))
        optimizer.apply(tape.gradient(loss, optimizer.weights), rate, accept=tf.constant(True))

    for number in range(STEPS):
        rate = 4e-3 * min(1.0, (number + 1) / 20) * (1.0 + np.cos(np.pi * number / STEPS)) / 2
        step(tf.constant(number), tf.constant(rate, tf.float32))
    optimizer.exchange_averages()
    return flow


def test_drawn_durations_spread_as_those_that_were_learnt_and_less_with_less_noise(learnt):
    drawn, rows = [], B * 12
    first = tf.constant(10**6)
    encodings, durations, valid, kinds = two_kinds(first, rows)
    start = random_normal(tf.constant([3, 3]), first + tf.range(rows), L, 1)[..., 0]
    for noise in (0.0, 0.5, 1.0):
        drawn.append(tf.exp(learnt.draw(encodings, valid, noise * start)).numpy())
    true, inside, kinds, found = durations.numpy(), valid.numpy()[..., 0], kinds.numpy(), drawn[-1]
    for kind in (0, 1):
        chosen = inside & (kinds == kind)
        assert np.log(found[chosen]).std() == pytest.approx(np.log(true[chosen]).std(), rel=0.2), kind
        assert found[chosen].mean() == pytest.approx(true[chosen].mean(), rel=0.08), kind
    expected = np.where(inside, MEAN[kinds], 0).sum(1)
    lengths = [np.log(np.where(inside, frames, 0).sum(1) / expected) for frames in (true, found)]
    assert lengths[1].std() == pytest.approx(lengths[0].std(), rel=0.2), "the tempo of a clip is that of its tokens"
    spreads = [np.log(frames).std(axis=1).mean() for frames in drawn]
    assert spreads[0] < spreads[1] < spreads[2]


def random_clips(seed=1):
    random = np.random.default_rng(seed)
    encodings = random.normal(size=[3, 9, 16]).astype(np.float32)
    durations, noise = random.integers(1, 9, [3, 9]).astype(np.int32), random.normal(size=[3, 9, 2]).astype(np.float32)
    return encodings, durations, length_mask(tf.constant([9, 4, 0]), 9), noise, np.array([0.1, 0.5, 0.9], np.float32)


def test_padding_and_what_is_in_it_change_neither_loss_nor_gradient_nor_draws():
    flow, garbage = moved(flow_alone()), np.nan

    def found(encodings, durations, valid, noise, time):
        with tf.GradientTape() as tape:
            loss = flow.loss(encodings, durations, valid, noise, time)
        gradients = tape.gradient(loss, flow.trainable_variables)
        drawn = tf.where(valid[..., 0], flow.draw(encodings, valid, noise[..., 0]), 0.0)
        return [loss.numpy(), *(gradient.numpy() for gradient in gradients)], drawn.numpy()

    encodings, durations, valid, noise, time = random_clips()
    expected, spoken = found(encodings, durations, valid, noise, time)
    assert all(np.abs(gradient).max() > 0 for gradient in expected[1:])
    assert expected[0][2] == 0, "a blank clip"
    padded = [np.pad(part, [(0, 0), (0, 5), *[(0, 0)] * (part.ndim - 2)]) for part in (encodings, durations, noise)]
    mask = np.pad(valid.numpy(), [(0, 0), (0, 5), (0, 0)])
    for part in (padded[0], padded[2]):
        part[~mask[..., 0]] = garbage
    padded[1][~mask[..., 0]] = 10_000
    again, drawn = found(padded[0], padded[1], tf.constant(mask), padded[2], time)
    for a, b in zip(again, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(drawn[:, :9], spoken, rtol=1e-5, atol=1e-5)


def test_the_other_losses_and_gradients_are_those_of_a_model_of_mean_durations():
    seed = tf.constant([5, 6])
    mean, flow = small_model(), small_model(duration_model="flow")
    shared = {weight.path: weight for weight in flow.trainable_variables}
    found = []
    for model in (mean, flow):
        with tf.GradientTape() as tape:
            sums, _ = losses(model, *clips(), seed)
            total = sum(tf.reduce_sum(sums[key]) for key in sums)
        weights = [weight if model is mean else shared[weight.path] for weight in mean.trainable_variables]
        gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(total, weights)]
        found.append([*(sums[key] for key in KEYS), *gradients])
        assert (np.abs(sums["duration_flow"]).max() > 0) == (model is flow)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    own = {path for path in shared if path not in {weight.path for weight in mean.trainable_variables}}
    assert own
    assert all(clip_group(shared[path]) == 2 for path in own)


def test_durations_are_scaled_to_the_frames_asked_for():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 60, 16)
    valid = np.arange(60) < lengths[:, np.newaxis]
    exact = np.exp(random.normal(1.5, 1.0, valid.shape)).astype(np.float32)
    wanted = np.maximum(lengths, (np.where(valid, exact, 0).sum(1) * np.exp(random.uniform(-2, 1.5, 16))).astype(int))
    wanted[:2] = lengths[:2]  # a frame each
    fitted = fit_durations(tf.constant(exact), tf.constant(wanted, tf.int32), tf.constant(valid)).numpy()
    durations = round_durations(tf.constant(fitted)).numpy()
    np.testing.assert_array_equal(durations.sum(1), wanted)
    assert durations[valid].min() == 1
    assert not durations[~valid].any()
    long = valid & (fitted > 1.01)
    ratios = np.where(long, fitted / exact, np.nan)
    for row in range(2, 16):
        if long[row].any():
            np.testing.assert_allclose(ratios[row][long[row]], np.nanmean(ratios[row]), rtol=1e-4)


def test_the_mean_speaks_where_nothing_is_drawn_and_frames_are_kept_where_they_are_asked_for():
    model = moved(small_model(duration_model="flow", seed=21))
    tokens = tf.constant(np.random.default_rng(2).integers(1, VOCABULARY, [2, 8]), tf.int32)

    def durations(timing=None):
        given = {} if timing is None else {"timing": timing}
        timed = model.time_tokens(
            tokens, tf.constant([8, 5]), longest=99, speed=tf.constant(1.0), conditioning=NOBODY, **given
        )
        return timed.durations.numpy()

    start = tf.random.stateless_normal([2, 8], [1, 2])
    np.testing.assert_array_equal(durations(Timing(start=start, drawn=tf.constant(False))), durations())
    drawn = durations(Timing(start=start, drawn=tf.constant(True)))
    assert (drawn != durations()).any()
    frames = tf.constant([30, 0])
    for chosen in (False, True):
        found = durations(Timing(frames=frames, start=start, drawn=tf.constant(chosen)))
        assert found[0].sum() == 30
        np.testing.assert_array_equal(found[1], (drawn if chosen else durations())[1])
