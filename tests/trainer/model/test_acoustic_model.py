"""The acoustic model: static shapes, determinism, learning, generation."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from four_clips import CHANNELS, EULER, KEYS, VOCABULARY, clips, evaluate, losses, moved, sizes, small_model

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
    assert duration_deviance(tf.math.log([[2.0, 9.0, 4.0, 1.0]]), durations, valid).numpy() == pytest.approx(
        0, abs=1e-6
    )


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
    assert not names["text_encoder/tokens/embeddings"]
    assert {name.rsplit("/", 1)[1] for name, decay in names.items() if not decay} == {
        "bias", "gamma", "beta", "embeddings",
    }  # fmt: skip


@pytest.mark.parametrize("latents", [0, 4])
def test_the_locked_loss_has_no_dynamic_shape(latents):
    model = small_model(voice_latents=latents)
    specs = [tf.TensorSpec(part.shape, part.dtype) for part in clips()] + [tf.TensorSpec([2], tf.int32)]

    @tf.function(input_signature=specs, jit_compile=True)
    def step(*tensors):
        with tf.GradientTape() as tape:
            _, loss = losses(model, *tensors)
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    graph = step.get_concrete_function().graph
    functions = graph._functions.values()  # no public way to the bodies of the loops
    operations = [
        op for g in (graph, *(f.graph for f in functions if hasattr(f, "graph"))) for op in g.get_operations()
    ]
    assert len(operations) > 500
    assert sum(op.type in ("While", "StatelessWhile") for op in operations) == 2
    forbidden = {"Where", "Unique", "UniqueV2", "DynamicPartition", "BooleanMask", "PyFunc", "EagerPyFunc", "NumpyFunc"}
    assert not {op.type for op in operations} & forbidden
    undefined = [
        op.name
        for op in operations
        for output in op.outputs
        if output.dtype not in (tf.variant, tf.resource)
        and not output.shape.is_fully_defined()
        and "redundant_placeholder" not in op.name  # inputs of a loop's condition that it never reads
    ]
    assert not undefined


def test_learns_a_generated_batch():
    ids, _, token_length, mel_length, noise, _ = clips()
    sound = np.random.default_rng(0).normal(size=[VOCABULARY, CHANNELS]) * 2 - 5
    mel = clips()[1]
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        if n:
            mel[row, :m] = np.repeat(sound[ids[row, :n]], np.diff(np.linspace(0, m, n + 1).astype(int)), axis=0)
    model = AcousticModel(
        small_model().config, Vocabularies(VOCABULARY), MelScale(CHANNELS, mean=-5.0, deviation=2.0), seed=1
    )
    weights = [variable.value for variable in model.trainable_variables]
    optimizer = tf.Variable(0.0), [tf.Variable(w * 0) for w in weights], [tf.Variable(w * 0) for w in weights]
    arguments = [tf.constant(part) for part in (ids, mel, token_length, mel_length, noise)]

    @tf.function(jit_compile=True)
    def step():
        count, firsts, seconds = optimizer
        count.assign_add(1.0)
        times = tf.random.stateless_uniform([4], [tf.cast(count, tf.int32), 0])
        with tf.GradientTape() as tape:
            sums, loss = losses(model, *arguments, times)
        gradients = tape.gradient(loss, model.trainable_variables)
        for w, g, first, second in zip(model.trainable_variables, gradients, firsts, seconds, strict=True):
            g = tf.convert_to_tensor(g)
            first.assign(0.9 * first + 0.1 * g)
            second.assign(0.99 * second + 0.01 * tf.square(g))
            root = tf.sqrt(second / (1 - 0.99**count)) + 1e-8
            w.assign_sub(5e-3 * first / (1 - 0.9**count) / root)
        return [tf.reduce_sum(sums[key]) for key in KEYS]

    history = np.array([[float(value) for value in step()] for _ in range(60)])
    first, last = history[:3].mean(axis=0), history[-10:].mean(axis=0)
    assert (last < [0.35 * first[0], 0.6 * first[1], 0.2 * first[2]]).all(), (first, last)


@pytest.mark.parametrize("speakers", [1, 3])
def test_generates_inside_xla(speakers):
    model = small_model(speakers)

    @tf.function(jit_compile=True)
    def speak(ids, token_length, temperature, speed):
        noise = tf.random.stateless_normal([4, 64, CHANNELS], [1, 2])
        options = {"noise": noise, "sampling": EULER, "temperature": temperature, "speed": speed}
        speaker = tf.constant([0, 1, 2, 0]) if speakers > 1 else None
        return model.generate(ids, token_length, conditioning=Conditioning(speaker=speaker), **options)

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


def test_speakers_change_the_voice():
    first, second = (losses(small_model(3), *clips(), speaker=tf.fill([4], speaker))[0] for speaker in range(2))
    assert (first["prior"][:2] != second["prior"][:2]).numpy().all()


def test_the_language_changes_what_is_said_and_one_language_costs_nothing():
    model = small_model(languages=2)
    first, second = (losses(model, *clips(), language=tf.fill([4], language))[0] for language in range(2))
    assert (first["prior"][:2] != second["prior"][:2]).numpy().all()
    tables = {weight.path for weight in model.trainable_variables} - {w.path for w in small_model().trainable_variables}
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


def test_a_mel_as_it_is_stored_is_widened_before_anything_else():
    ids, mel, *rest = clips()
    stored = mel.astype(np.float16)
    narrow, wide = (losses(small_model(voice_latents=4), ids, part, *rest)[0] for part in (stored, stored.astype("f4")))
    for key in KEYS:
        assert narrow[key].dtype == tf.float32
        np.testing.assert_array_equal(narrow[key], wide[key])


def test_bfloat16_is_close_to_float32():
    expected = evaluate(small_model(), clips())
    found = evaluate(small_model(dtype_policy="mixed_bfloat16"), clips())
    assert {variable.dtype for variable in small_model(dtype_policy="mixed_bfloat16").trainable_variables} == {
        "float32"
    }
    assert found[1].dtype == np.float32
    assert all(np.isfinite(gradient).all() for gradient in found[2])
    np.testing.assert_allclose(found[1], expected[1], rtol=0.05)
