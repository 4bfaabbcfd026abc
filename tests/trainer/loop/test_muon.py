"""Muon: orthogonal updates of matrices, AdamW for the rest."""

import numpy as np
import pytest
import tensorflow as tf
from four_clips import small_model

from xtts.shared.config import TrainingConfig
from xtts.trainer.loop.optimizer import AdamW, Muon, matrix_shape, orthogonalise
from xtts.trainer.loop.train_state import is_hidden_matrix

TRAINING = TrainingConfig(weight_decay=0.1)


def is_matrix(variable):
    return len(variable.shape) > 1


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (12, 5)])
def test_singular_values_are_driven_towards_one(shape):
    matrices = tf.random.stateless_normal([3, *shape], [1, 2])
    values = np.linalg.svd(orthogonalise([matrices])[0].numpy(), compute_uv=False)
    assert values.min() > 0.5
    assert values.max() < 1.3
    # The singular vectors stay: the product with the matrix is symmetric and positive.
    products = tf.matmul(orthogonalise([matrices])[0], matrices, transpose_b=True).numpy()
    np.testing.assert_allclose(products, products.transpose(0, 2, 1), atol=0.02 * np.abs(products).max())


def test_an_update_is_that_of_the_formula_and_other_weights_are_adamws():
    def weights():
        return [tf.Variable([[1.0, -2.0], [3.0, 0.5], [0.2, 0.1]]), tf.Variable([0.3, -0.7])]

    gradients = [tf.constant([[0.1, -0.2], [0.3, 1.0], [-0.4, 0.2]]), tf.constant([0.5, -0.5])]
    muon, adamw = Muon(weights(), TRAINING, is_matrix, is_matrix), AdamW(weights(), TRAINING, is_matrix)
    expected, momentum = weights()[0].numpy(), np.zeros([3, 2], np.float32)
    for _ in range(3):
        for optimizer in (muon, adamw):
            optimizer.apply(optimizer.flat.flatten(gradients), tf.constant(0.01), accept=tf.constant(True))
        momentum = 0.95 * momentum + gradients[0].numpy()
        nesterov = gradients[0].numpy() + 0.95 * momentum
        update = 0.2 * np.sqrt(3) * orthogonalise([tf.constant(nesterov[np.newaxis])])[0][0].numpy()
        expected = expected - 0.01 * (update + 0.1 * expected)
    np.testing.assert_allclose(muon.weights[0], expected, rtol=1e-5)
    np.testing.assert_allclose(muon.weights[1], adamw.weights[1], rtol=1e-6)
    muon.apply(muon.flat.flatten([part * np.nan for part in gradients]), tf.constant(0.01), accept=tf.constant(False))
    np.testing.assert_allclose(muon.weights[0], expected, rtol=1e-5)
    np.testing.assert_allclose(muon.flat.split(muon.first.numpy())[0], momentum, rtol=1e-5)


def test_the_matrices_inside_the_networks_are_orthogonalised():
    weights = small_model().trainable_variables
    chosen = {weight.path.partition("/")[2] for weight in weights if is_hidden_matrix(weight)}
    assert {"text_encoder/block_0/attention/qkv/kernel", "decoder/block_0/ffn_in/kernel"} <= chosen
    assert not [path for path in chosen if "modulation" in path or "tokens" in path or "depthwise" in path]
    for weight in weights:
        if is_hidden_matrix(weight):
            assert min(matrix_shape(weight)) >= 8, weight.path
