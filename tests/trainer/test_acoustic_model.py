"""The acoustic model: losses independent of padding, static shapes, determinism, learning, generation."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.config_files import load_config
from xtts.trainer.acoustic_model import AcousticModel, decays, duration_deviance

VOCABULARY, CHANNELS = 20, 16
KEYS = ("prior", "flow", "duration")
TOKEN_LENGTH, MEL_LENGTH = (9, 5, 0, 7), (40, 21, 0, 33)


def sizes(name, **changes):
    return load_config(name).model.model_copy(update=changes)


@functools.cache
def small_model(speakers=1, dtype_policy="float32"):
    config = sizes("tiny", text_width=32, duration_width=24, decoder_width=32, decoder_blocks=2, text_blocks=1)
    return AcousticModel(
        config,
        vocabulary=VOCABULARY,
        mel_channels=CHANNELS,
        mel_mean=-5.0,
        mel_deviation=2.0,
        speakers=speakers,
        dtype_policy=dtype_policy,
        seed=7,
    )


@functools.cache
def wakened_model():
    """A model whose zero-initialised weights are moved, so that every path carries values and gradients."""
    model = AcousticModel(
        small_model().config, vocabulary=VOCABULARY, mel_channels=CHANNELS, mel_mean=-5.0, mel_deviation=2.0, seed=3
    )
    for i, variable in enumerate(model.trainable_variables):
        variable.assign_add(0.05 * tf.random.stateless_normal(variable.shape, [3, i]))
    return model


def clips(tokens=10, frames=40):
    """Arguments of `loss_sums` for four clips, the third of them blank, in a bucket of this size."""
    rng = np.random.default_rng(11)
    batch = len(TOKEN_LENGTH)
    drawn = (
        rng.integers(1, VOCABULARY, size=[batch, 10]).astype(np.int32),
        (rng.normal(size=[batch, 40, CHANNELS]) * 2 - 5).astype(np.float32),
        rng.normal(size=[batch, 40, CHANNELS]).astype(np.float32),
        rng.uniform(size=batch).astype(np.float32),
    )
    ids, noise = np.zeros([batch, tokens], np.int32), np.zeros([batch, frames, CHANNELS], np.float32)
    mel = np.full([batch, frames, CHANNELS], np.log(1e-5), np.float32)
    for row, (n, m) in enumerate(zip(TOKEN_LENGTH, MEL_LENGTH, strict=True)):
        ids[row, :n], mel[row, :m], noise[row, :m] = drawn[0][row, :n], drawn[1][row, :m], drawn[2][row, :m]
    lengths = np.array(TOKEN_LENGTH, np.int32), np.array(MEL_LENGTH, np.int32)
    return [ids, mel, *lengths, noise, drawn[3]]


def losses(model, ids, mel, token_length, mel_length, noise, time, dropout_seed=None, speaker=None):
    sums = model.loss_sums(
        ids, mel, token_length, mel_length, noise=noise, time=time, dropout_seed=dropout_seed, speaker=speaker
    )
    counts = model.loss_counts(token_length, mel_length)
    return sums, sum(tf.reduce_sum(sums[key]) / counts[key] for key in KEYS)


@functools.cache
def compiled(model):
    """(sums, loss, gradients) inside XLA, compiled once for all tests of a model."""

    @tf.function(jit_compile=True)
    def step(*tensors):
        with tf.GradientTape() as tape:
            sums, loss = losses(model, *tensors)
        gradients = tape.gradient(loss, model.trainable_variables)
        return sums, loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    return step


def evaluate(model, arguments):
    return tf.nest.map_structure(lambda x: x.numpy(), compiled(model)(*map(tf.constant, arguments)))


@functools.cache
def reference():
    return evaluate(wakened_model(), clips())


def assert_same(found, expected, tolerance=1e-5):
    for key in KEYS:
        np.testing.assert_allclose(found[0][key], expected[0][key], rtol=tolerance, err_msg=key)
    assert abs(found[1] - expected[1]) <= tolerance
    for variable, a, b in zip(wakened_model().trainable_variables, found[2], expected[2], strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance, err_msg=variable.path)


def test_losses_and_gradients_do_not_depend_on_the_bucket():
    assert_same(evaluate(wakened_model(), clips(tokens=17, frames=56)), reference())


@pytest.mark.parametrize("garbage", [1e6, np.nan])
def test_garbage_in_the_padding_changes_nothing(garbage):
    ids, mel, token_length, mel_length, noise, time = clips()
    for row, (n, m) in enumerate(zip(token_length, mel_length, strict=True)):
        ids[row, n:], mel[row, m:], noise[row, m:] = 10_000, garbage, garbage
    assert_same(evaluate(wakened_model(), [ids, mel, token_length, mel_length, noise, time]), reference(), 1e-7)


def test_every_weight_learns_and_no_gradient_is_nan():
    _, loss, gradients = reference()
    assert np.isfinite(loss)
    for variable, gradient in zip(wakened_model().trainable_variables, gradients, strict=True):
        assert np.isfinite(gradient).all(), variable.path
        assert np.abs(gradient).max() > 0, variable.path


def test_blank_clips_weigh_nothing():
    sums, _, _ = reference()
    assert all(sums[key][2] == 0 for key in KEYS)
    arguments = [np.zeros_like(part) for part in clips()]
    sums, loss, gradients = evaluate(wakened_model(), arguments)
    assert loss == 0 and all((gradient == 0).all() for gradient in gradients)  # noqa: PT018
    assert all(wakened_model().loss_counts(arguments[2], arguments[3])[key] == 1 for key in KEYS)


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
        model = AcousticModel(
            small_model().config, vocabulary=20, mel_channels=16, mel_mean=0.0, mel_deviation=1.0, seed=seed
        )
        return [(variable.path, variable.numpy()) for variable in model.trainable_variables]

    first, again, other = weights(0), weights(0), weights(1)
    assert len({path for path, _ in first}) == len(first)
    assert all(a[0] == b[0] and (a[1] == b[1]).all() for a, b in zip(first, again, strict=True))
    for (path, a), (_, b) in zip(first, other, strict=True):
        assert (a != b).any() or not a.any() or path.endswith(("gamma", "bias")), path


@pytest.mark.parametrize(("name", "millions"), [("tiny", 1), ("small", 6), ("normal", 20), ("big", 80)])
def test_sizes(name, millions):
    model = AcousticModel(sizes(name), vocabulary=40, mel_channels=80, mel_mean=0.0, mel_deviation=1.0)
    assert 0.75e6 * millions <= model.parameter_count <= 1.25e6 * millions


def test_weight_decay_is_for_matrices():
    names = {variable.path.split("/", 1)[1]: decays(variable) for variable in small_model().trainable_variables}
    assert names["decoder/block_0/depthwise/kernel"]
    assert names["text_encoder/block_0/attention/inward/kernel"]
    assert not names["text_encoder/tokens/embeddings"]
    assert {name.rsplit("/", 1)[1] for name, decay in names.items() if not decay} == {
        "bias", "gamma", "beta", "embeddings",
    }  # fmt: skip


def test_the_locked_loss_has_no_dynamic_shape():
    model = small_model()
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
        small_model().config, vocabulary=VOCABULARY, mel_channels=CHANNELS, mel_mean=-5.0, mel_deviation=2.0, seed=1
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
        options = {"noise": noise, "steps": 3, "temperature": temperature, "speed": speed}
        speaker = tf.constant([0, 1, 2, 0]) if speakers > 1 else None
        return model.generate(ids, token_length, frames=64, speaker=speaker, **options)

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


def test_bfloat16_is_close_to_float32():
    expected = evaluate(small_model(), clips())
    found = evaluate(small_model(dtype_policy="mixed_bfloat16"), clips())
    assert {variable.dtype for variable in small_model(dtype_policy="mixed_bfloat16").trainable_variables} == {
        "float32"
    }
    assert found[1].dtype == np.float32
    assert all(np.isfinite(gradient).all() for gradient in found[2])
    np.testing.assert_allclose(found[1], expected[1], rtol=0.05)
