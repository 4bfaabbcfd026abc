"""What lies outside the clips changes neither losses nor gradients, and every weight has a gradient."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from four_clips import KEYS, clips, evaluate, losses, small_model

from xtts.trainer.model.conditioning import Conditioning, drop_conditions
from xtts.trainer.model.random_numbers import fold_seed

PLAIN, VOICE = {}, {"voice_latents": 4, "voice_width": 16, "dropout": 0.0, "condition_dropout": 0.5}
ONE_RATE = {"decoder_levels": (), "decoder_noisy_skip": False}
MODELS = pytest.mark.parametrize("changes", [PLAIN, VOICE, ONE_RATE], ids=["plain", "voice", "one-rate"])


@functools.cache
def _wakened(changes):
    model = small_model(seed=3, **dict(changes))
    for i, variable in enumerate(model.trainable_variables):
        variable.assign_add(0.05 * tf.random.stateless_normal(variable.shape, [3, i]))
    return model


def wakened_model(changes=PLAIN):
    """A model whose zero-initialised weights are moved, so that every path carries values and gradients."""
    return _wakened(tuple(changes.items()))


def test_some_of_the_clips_here_have_a_voice_and_some_the_null_condition():
    seed = tf.constant(arguments_of(VOICE)[-1])
    dropped = drop_conditions(Conditioning(), 0.5, tf.constant(clips()[3]), fold_seed(seed, 3)).dropped.numpy()
    assert set(dropped[[0, 1, 3]]) == {True, False}


def arguments_of(changes, **bucket):
    """The clips, for a model with latents cropped at random places."""
    return clips(**bucket) + ([np.array([5, 6], np.int32)] if "voice_latents" in changes else [])


@functools.cache
def _reference(changes):
    return evaluate(_wakened(changes), arguments_of(dict(changes)))


def reference(changes=PLAIN):
    return _reference(tuple(changes.items()))


def assert_same(found, changes, tolerance=1e-5):
    expected = reference(changes)
    for key in KEYS:
        np.testing.assert_allclose(found[0][key], expected[0][key], rtol=tolerance, err_msg=key)
    assert abs(found[1] - expected[1]) <= tolerance
    for variable, a, b in zip(wakened_model(changes).trainable_variables, found[2], expected[2], strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=variable.path)


@MODELS
def test_losses_and_gradients_do_not_depend_on_the_bucket(changes):
    assert_same(evaluate(wakened_model(changes), arguments_of(changes, tokens=17, frames=56)), changes)


@MODELS
@pytest.mark.parametrize("garbage", [1e6, np.nan])
def test_garbage_in_the_padding_changes_nothing(garbage, changes):
    ids, mel, token_length, mel_length, noise, *rest = arguments_of(changes)
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        ids[row, n:], mel[row, m:], noise[row, m:] = 10_000, garbage, garbage
    assert_same(evaluate(wakened_model(changes), [ids, mel, token_length, mel_length, noise, *rest]), changes, 1e-7)


@MODELS
def test_every_weight_learns_and_no_gradient_is_nan(changes):
    _, loss, gradients = reference(changes)
    assert np.isfinite(loss)
    for variable, gradient in zip(wakened_model(changes).trainable_variables, gradients, strict=True):
        assert np.isfinite(gradient).all(), variable.path
        assert np.abs(gradient).max() > 0, variable.path


@MODELS
def test_blank_clips_weigh_nothing(changes):
    sums, _, _ = reference(changes)
    assert all(sums[key][2] == 0 for key in KEYS)
    arguments = [np.zeros_like(part) for part in arguments_of(changes)]
    sums, loss, gradients = evaluate(wakened_model(changes), arguments)
    assert loss == 0 and all((gradient == 0).all() for gradient in gradients)  # noqa: PT018
    counts = functools.partial(wakened_model(changes).loss_counts, arguments[2], arguments[3])
    assert all(counts()[key] == 1 and counts(least=0.0)[key] == 0 for key in KEYS)


def test_more_tokens_than_frames_stays_finite():
    ids, mel, _, _, noise, time = clips()
    _, loss, gradients = evaluate(
        wakened_model(), [ids, mel, np.full(4, 10, np.int32), np.array([1, 4, 9, 10], np.int32), noise, time]
    )
    assert np.isfinite(loss)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_micro_batches_add_up_to_the_batch():
    sums, _, _ = reference()
    for rows in (slice(0, 2), slice(2, 4)):
        half = tf.function(functools.partial(losses, wakened_model()))(*(part[rows] for part in clips()))[0]
        for key in KEYS:
            np.testing.assert_allclose(half[key], sums[key][rows], rtol=1e-5, atol=1e-5)
