"""The acoustic model: static shapes, determinism, learning, generation."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from four_clips import CHANNELS, EULER, KEYS, VOCABULARY, clips, evaluate, losses, moved, sizes, small_model

from xtts.trainer.doctor.checks.graph import DYNAMIC_OPS, PYTHON_OPS, unknown_shapes, walk
from xtts.trainer.model.acoustic_model import AcousticModel, MelScale
from xtts.trainer.model.conditioning import Conditioning, Vocabularies
from xtts.trainer.model.losses import duration_deviance
from xtts.trainer.model.weight_groups import decays
from xtts.trainer.synth.tensorflow_speaker import generator


def test_dropout_is_a_function_of_its_seed():
    loss = [float(losses(small_model(), *clips(), dropout_seed=seed)[1]) for seed in ([1, 2], [1, 2], [1, 3])]
    assert loss[0] == loss[1] != loss[2]


def test_duration_loss_is_least_at_the_mean():
    durations, valid = tf.constant([[2, 9, 4, 50]]), tf.constant([[[True], [True], [True], [False]]])
    candidates = np.linspace(1.0, 10.0, 91)
    deviance = [
        float(duration_deviance(tf.fill([1, 4], tf.math.log(np.float32(frames))), durations, valid)[0])
        for frames in candidates
    ]
    assert candidates[np.argmin(deviance)] == pytest.approx(5.0)
    exact = duration_deviance(tf.math.log([[2.0, 9.0, 4.0, 1.0]]), durations, valid)
    assert exact.numpy() == pytest.approx(0, abs=1e-6)


def test_initial_weights_are_a_function_of_the_seed():
    def weights(seed):
        model = AcousticModel(small_model().config, Vocabularies(20), MelScale(16, mean=0.0, deviation=1.0), seed=seed)
        return [(variable.path, variable.numpy()) for variable in model.trainable_variables]

    first, again, other = weights(0), weights(0), weights(1)
    assert len({path for path, _ in first}) == len(first)
    assert all(a[0] == b[0] and (a[1] == b[1]).all() for a, b in zip(first, again, strict=True))
    for (path, a), (_, b) in zip(first, other, strict=True):
        assert (a != b).any() or not a.any() or path.endswith(("gamma", "bias")), path


@pytest.mark.parametrize(("name", "millions"), [("tiny", 2), ("small", 7), ("normal", 20), ("big", 85)])
def test_every_size_has_about_its_parameters(name, millions):
    model = AcousticModel(sizes(name), Vocabularies(40), MelScale(80, mean=0.0, deviation=1.0))
    assert 0.75e6 * millions <= model.parameter_count <= 1.25e6 * millions


def test_weight_decay_is_for_matrices():
    names = {variable.path.split("/", 1)[1]: decays(variable) for variable in small_model().trainable_variables}
    assert names["decoder/block_0/depthwise/kernel"]
    assert names["text_encoder/block_0/attention/qkv/kernel"]
    assert {name.rsplit("/", 1)[1] for name, decay in names.items() if not decay} == {
        "bias", "gamma", "beta", "embeddings",
    }  # fmt: skip


def test_the_locked_loss_has_no_dynamic_shape(compiled_step):
    graph = compiled_step.get_concrete_function().graph
    kinds = [op.type for op in walk(graph)]
    assert len(kinds) > 500
    assert sum(kind in ("While", "StatelessWhile") for kind in kinds) == 2
    assert not set(kinds) & {*PYTHON_OPS, *DYNAMIC_OPS, "BooleanMask"}
    assert not unknown_shapes(graph)


def test_learns_a_generated_batch(voice_model, compiled_step):
    ids, mel, token_length, mel_length, noise, _ = clips()
    sound = np.random.default_rng(0).normal(size=[VOCABULARY, CHANNELS]) * 2 - 5
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        if n:
            mel[row, :m] = np.repeat(sound[ids[row, :n]], np.diff(np.linspace(0, m, n + 1).astype(int)), axis=0)
    before = [variable.numpy() for variable in voice_model.trainable_variables]
    weights, firsts, seconds = list(before), [0.0] * len(before), [0.0] * len(before)
    history = []
    for count in range(1, 61):
        times = tf.random.stateless_uniform([4], [count, 0])
        sums, _, gradients = compiled_step(ids, mel, token_length, mel_length, noise, times, np.array([5, 6], np.int32))
        history.append([float(tf.reduce_sum(sums[key])) for key in KEYS])
        for i, gradient in enumerate(gradients):  # Adam
            firsts[i] = 0.9 * firsts[i] + 0.1 * gradient.numpy()
            seconds[i] = 0.99 * seconds[i] + 0.01 * gradient.numpy() ** 2
            root = np.sqrt(seconds[i] / (1 - 0.99**count)) + 1e-8
            weights[i] = weights[i] - 5e-3 * firsts[i] / (1 - 0.9**count) / root
            voice_model.trainable_variables[i].assign(weights[i])
    for variable, value in zip(voice_model.trainable_variables, before, strict=True):
        variable.assign(value)
    first, last = np.mean(history[:3], axis=0), np.mean(history[-10:], axis=0)
    assert (last < [0.35 * first[0], 0.6 * first[1], 0.2 * first[2]]).all(), (first, last)


def test_generates_inside_xla():
    model = small_model(3)

    @tf.function(jit_compile=True)
    def speak(ids, token_length, temperature, speed):
        noise = tf.random.stateless_normal([4, 64, CHANNELS], [1, 2])
        options = {"noise": noise, "sampling": EULER, "temperature": temperature, "speed": speed}
        return model.generate(
            ids, token_length, conditioning=Conditioning(speaker=tf.constant([0, 1, 2, 0])), **options
        )

    ids, token_length = clips()[0], clips()[2]
    mel, mel_length, durations = (x.numpy() for x in speak(ids, token_length, 0.7, 1.0))
    assert mel.shape == (4, 64, CHANNELS)
    assert np.isfinite(mel).all()
    assert (durations.sum(axis=1) == mel_length).all()
    assert ((durations > 0) == (np.arange(10) < token_length[:, None])).all()
    for row in range(4):
        assert (mel[row, mel_length[row] :] == np.float32(model.silence)).all()
    _, slow, _ = speak(ids, token_length, 0.7, 0.05)
    assert slow.numpy()[0] > 64, "a clip longer than its shape reports its full length"


@pytest.mark.parametrize("what", ["speaker", "language"])
def test_the_speaker_and_the_language_change_what_is_said(what):
    model = small_model(**{f"{what}s": 3})
    first, second = (losses(model, *clips(), **{what: tf.fill([4], number)})[0] for number in range(2))
    assert (first["prior"][:2] != second["prior"][:2]).numpy().all()


def test_one_language_costs_nothing():
    tables = {weight.path for weight in small_model(languages=3).trainable_variables}
    tables -= {weight.path for weight in small_model().trainable_variables}
    assert {path.rpartition("acoustic_model/")[2] for path in tables} == {
        "text_encoder/languages/embeddings", "decoder/languages/embeddings",
    }  # fmt: skip


def test_synthesis_is_given_the_language_by_number():
    model = moved(small_model(languages=2, seed=9))
    scalars = tf.constant(0.0), tf.constant(1.0), tf.constant([1, 2]), tf.constant([0])
    speak = partial(generator(model, 64, ["language"], guided=False), EULER.schedule, tf.constant(0.0))
    tokens = tf.constant(clips()[0][:1]), tf.constant([9])
    first, second, again = (speak(*tokens, *scalars, tf.constant([language]))[0] for language in (0, 1, 0))
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(first, again)


def test_a_mel_as_it_is_stored_is_widened_before_anything_else(voice_model):
    ids, mel, *rest = clips()
    stored = mel.astype(np.float16)
    narrow, wide = (losses(voice_model, ids, part, *rest)[0] for part in (stored, stored.astype("f4")))
    for key in KEYS:
        assert narrow[key].dtype == tf.float32
        np.testing.assert_array_equal(narrow[key], wide[key])


def test_bfloat16_is_close_to_float32():
    mixed = small_model(dtype_policy="mixed_bfloat16")
    assert {variable.dtype for variable in mixed.trainable_variables} == {"float32"}
    _, loss, gradients = evaluate(mixed, clips())
    assert loss.dtype == np.float32
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    np.testing.assert_allclose(loss, losses(small_model(), *clips())[1], rtol=0.05)
