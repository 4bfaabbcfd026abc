from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from four_clips import small_model

from xtts.shared.config import TrainingConfig
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.optimizer import Optimizer, learning_rate
from xtts.trainer.loop.schedule import decay_start, decaying_from, peak_learning_rate
from xtts.trainer.loop.update_rules import OPTIMIZERS, AdamW, UpdateRule, matrix_shape, orthogonalise
from xtts.trainer.models.acoustic.objective import AcousticObjective

TRAINING = TrainingConfig(
    learning_rate=0.01, weight_decay=0.1, adam_beta2=0.99, warmup_fraction=1 / 11, steps=110,
    final_learning_rate_share=0.1,
)


def weights(*values):
    values = values or ([[1.0, -2.0], [3.0, 0.5]], [0.3, -0.7])
    names = ["kernel" if np.ndim(value) > 1 else "bias" for value in values]
    return [keras.Variable(np.float32(value), name=name) for name, value in zip(names, values, strict=True)]


def optimizer_of(chosen, name="adamw", metrics=None):
    """An optimizer of these weights, of which matrices decay."""
    metrics = metrics or Metrics(weights={}, held_out=(), compared=())
    objective = SimpleNamespace(model=SimpleNamespace(trainable_variables=chosen), metrics=metrics, edges=())
    return Optimizer(objective, TRAINING.model_copy(update={"optimizer": name}))


def state_of(optimizer):
    """The vectors that the optimizer keeps, by name."""
    return {name: vector.numpy() for name, vector, _ in optimizer.vectors()}


def gradients(step):
    return [tf.constant([[0.1, -0.2], [0.3 * step, 1.0]]), tf.constant([0.5, -0.5 / (step + 1)])]


def update(optimizer, step, *, accept=True):
    optimizer.apply(optimizer.flat.flatten(gradients(step)), tf.constant(0.01), accept=tf.constant(accept))


def averages(optimizer):
    return optimizer.flat.split(optimizer.averages.numpy())[0].numpy()


class Lion(UpdateRule):
    """Chen et al., "Symbolic discovery of optimization algorithms", arXiv 2302.06675: one moment, and its sign."""

    kept = ("momentum",)

    def direction(self, gradient, count):
        momentum = self.state["momentum"]
        return tf.sign(0.9 * momentum + 0.1 * gradient), 0.99 * momentum + 0.01 * gradient


@pytest.mark.parametrize(("rule", "theirs", "state"), [
    (AdamW, keras.optimizers.AdamW(0.01, weight_decay=0.1, beta_2=0.99, epsilon=1e-8), {"first", "second"}),
    (Lion, keras.optimizers.Lion(0.01, weight_decay=0.1), {"momentum"}),
])
def test_updates_equal_those_of_keras_and_no_moments_are_kept_that_nothing_reads(monkeypatch, rule, theirs, state):
    monkeypatch.setitem(OPTIMIZERS, "adamw", lambda hidden: rule)
    ours, kept = optimizer_of(weights()), weights()
    theirs.exclude_from_weight_decay([kept[1]])
    theirs.build(kept)
    for step in range(5):
        update(ours, step)
        theirs.apply(gradients(step), kept)
    for weight, expected in zip(ours.weights, kept, strict=True):
        np.testing.assert_allclose(weight.numpy(), expected.numpy(), rtol=1e-5)
    assert state_of(ours).keys() == {"averages", *state}


def test_a_larger_batch_raises_the_whole_schedule():
    at_32 = TRAINING.model_copy(update={"batch_size": 32, "learning_rate_batch_size": 32})
    at_128 = at_32.model_copy(update={"batch_size": 128})
    for step in (0, 10, 50, 109):
        rates = [float(learning_rate(training, tf.constant(step))) for training in (at_32, at_128)]
        assert rates[1] == pytest.approx(2 * rates[0])
    assert peak_learning_rate(at_128.model_copy(update={"learning_rate_batch_size": None})) == TRAINING.learning_rate


def test_averages_follow_the_weights_and_exchanging_twice_restores_both():
    optimizer = optimizer_of(weights())
    start = optimizer.weights[0].numpy()
    update(optimizer, 0)
    weight, average = optimizer.weights[0].numpy(), averages(optimizer)
    decay = min(TRAINING.ema_decay, 2 / 11)
    np.testing.assert_allclose(average, decay * start + (1 - decay) * weight, rtol=1e-6)
    optimizer.exchange_averages()
    assert np.array_equal(optimizer.weights[0], average)
    optimizer.exchange_averages()
    assert np.array_equal(optimizer.weights[0], weight)
    assert np.array_equal(averages(optimizer), average)


@pytest.mark.parametrize(("decay_fraction", "step", "expected"), [
    (1.0, 0, 0.001), (1.0, 9, 0.01), (1.0, 10, 0.01), (1.0, 60, 0.0055), (1.0, 110, 0.001), (1.0, 500, 0.001),
    (0.2, 0, 0.001), (0.2, 10, 0.01), (0.2, 90, 0.01), (0.2, 100, 0.0055), (0.2, 110, 0.001), (0.0, 109, 0.01),
])
def test_warm_up_then_the_peak_then_a_cosine_to_the_floor(decay_fraction, step, expected):
    training = TRAINING.model_copy(update={"decay_fraction": decay_fraction})
    assert float(learning_rate(training, tf.constant(step, tf.int64))) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("epochs", [None, 7, "auto"])
def test_a_decay_that_begins_early_begins_there_and_is_what_a_resumed_run_reads(epochs):
    training = TrainingConfig(steps=1000, epochs=epochs, warmup_fraction=0.05, decay_fraction=0.2)
    for step in (100, 333, 640):
        shorter = decaying_from(training, step)
        assert decay_start(shorter) == step
        assert step < shorter.steps < 1000
        assert shorter.epochs is None, "epochs would decide the steps again"


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (12, 5)])
def test_singular_values_are_driven_towards_one(shape):
    matrices = tf.random.stateless_normal([3, *shape], [1, 2])
    values = np.linalg.svd(orthogonalise([matrices])[0].numpy(), compute_uv=False)
    assert values.min() > 0.5
    assert values.max() < 1.3
    # The singular vectors stay: the product with the matrix is symmetric and positive.
    products = tf.matmul(orthogonalise([matrices])[0], matrices, transpose_b=True).numpy()
    np.testing.assert_allclose(products, products.transpose(0, 2, 1), atol=0.02 * np.abs(products).max())


def test_an_update_of_a_matrix_is_that_of_the_formula_and_only_other_weights_have_second_moments():
    muon = optimizer_of(weights(start := [[1.0, -2.0], [3.0, 0.5], [0.2, 0.1]], [0.3, -0.7]), "muon")
    gradients = [tf.constant([[0.1, -0.2], [0.3, 1.0], [-0.4, 0.2]]), tf.constant([0.5, -0.5])]
    expected, momentum = np.float32(start), np.zeros([3, 2], np.float32)
    for _ in range(3):
        muon.apply(muon.flat.flatten(gradients), tf.constant(0.01), accept=tf.constant(True))
        momentum = 0.95 * momentum + gradients[0].numpy()
        nesterov = gradients[0].numpy() + 0.95 * momentum
        update = 0.2 * np.sqrt(3) * orthogonalise([tf.constant(nesterov[np.newaxis])])[0][0].numpy()
        expected = expected - 0.01 * (update + 0.1 * expected)
    np.testing.assert_allclose(muon.weights[0].numpy(), expected, rtol=1e-5)
    muon.apply(muon.flat.flatten([part * np.nan for part in gradients]), tf.constant(0.01), accept=tf.constant(False))
    np.testing.assert_allclose(muon.weights[0].numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(state_of(muon)["momentum"], momentum.ravel(), rtol=1e-5)
    sizes = {name: len(vector) for name, vector in state_of(muon).items()}
    assert sizes == {"averages": 8, "momentum": 6, "first": 2, "second": 2}


@pytest.mark.parametrize(("apart", "norms"), [({}, [13.0]), ({"bias_norm": "bias"}, [5.0, 12.0])])
def test_gradients_are_clipped_together_but_for_those_that_are_clipped_apart(apart, norms):
    metrics = Metrics(weights={}, held_out=(), compared=(), clipped_apart=apart)
    optimizer = optimizer_of(weights([[1.0, 1.0]], [1.0]), metrics=metrics)
    gradient = optimizer.flat.flatten([tf.constant([[3.0, 4.0]]), tf.constant([12.0])])
    clipped, found = optimizer.clip(gradient, 1.0)
    np.testing.assert_allclose(found, norms, rtol=1e-6)
    expected = [3.0 / norms[0], 4.0 / norms[0], 12.0 / norms[-1]]  # matrices first: they decay
    np.testing.assert_allclose(clipped, expected, rtol=1e-6)


def test_the_matrices_inside_the_networks_are_orthogonalised():
    optimizer = Optimizer(AcousticObjective(small_model()), TRAINING.model_copy(update={"optimizer": "muon"}))
    (hidden,) = (parts for name, _, parts in optimizer.vectors() if name == "momentum")
    chosen = {weight.path.partition("/")[2]: weight for weight, _ in hidden}
    assert {"text_encoder/block_0/attention/qkv/kernel", "decoder/block_0/ffn_in/kernel"} <= chosen.keys()
    assert not [path for path in chosen if "modulation" in path or "tokens" in path or "depthwise" in path]
    for path, weight in chosen.items():
        assert min(matrix_shape(weight.shape)) >= 8, path
