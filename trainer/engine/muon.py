"""Muon: momentum of matrices, orthogonalised; all other weights as AdamW moves them.

Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); the size of an update is that of
"Muon is scalable for LLM training", arXiv 2502.16982, section 2.2, so that learning rate and weight decay suit both.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.trainer.engine.optimizer import AdamW, Change

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd polynomial that drives singular values towards 1: after five rounds they lie in 0.7 to 1.2."""
MOMENTUM = 0.95
"""Decay of the sum of gradients that is orthogonalised."""
ROUNDS = 5
UPDATE_RMS = 0.2
"""Root mean square of an update at learning rate 1, about that of AdamW."""


class Muon(AdamW):
    """As AdamW, with another update for the matrices; their second moments stay zero."""

    def __init__(
        self,
        weights: Sequence[tf.Variable],
        training: TrainingConfig,
        decays: Callable[[tf.Variable], bool],
        is_hidden_matrix: Callable[[tf.Variable], bool],
    ) -> None:
        super().__init__(weights, training, decays)
        self.matrices = [is_hidden_matrix(weight) for weight in self.weights]

    def changes(self, gradients: Sequence[tf.Tensor], count: tf.Tensor) -> list[Change]:
        """See AdamW; products of matrices of one shape are computed together."""
        changes = super().changes(gradients, count)
        shapes = defaultdict[tuple[int, int], list[int]](list)
        for i, gradient in enumerate(gradients):
            if self.matrices[i]:
                shapes[matrix_shape(gradient)].append(i)
        for shape, places in shapes.items():
            momenta = [MOMENTUM * self.first[i] + gradients[i] for i in places]
            nesterov = [gradients[i] + MOMENTUM * momentum for i, momentum in zip(places, momenta, strict=True)]
            made = orthogonalise(tf.stack([tf.reshape(matrix, shape) for matrix in nesterov]))
            made *= UPDATE_RMS * math.sqrt(max(shape))
            for number, (i, momentum) in enumerate(zip(places, momenta, strict=True)):
                changes[i] = Change(tf.reshape(made[number], momentum.shape), momentum, tf.zeros_like(momentum))
        return changes


def matrix_shape(weight: tf.Tensor) -> tuple[int, int]:
    """Rows and columns: a filter [K, in, out] is a matrix [K * in, out]."""
    columns = weight.shape[-1]
    return weight.shape.num_elements() // columns, columns


def orthogonalise(matrices: tf.Tensor) -> tf.Tensor:
    """Each matrix with all its singular values near 1, by Newton-Schulz: float32[N, R, C] -> float32[N, R, C]."""
    rows, columns = matrices.shape[1:]
    x = tf.transpose(matrices, [0, 2, 1]) if rows > columns else matrices
    x /= tf.norm(x, axis=(1, 2), keepdims=True) + 1e-7
    first, third, fifth = COEFFICIENTS
    for _ in range(ROUNDS):
        square = tf.matmul(x, x, transpose_b=True)
        x = first * x + tf.matmul(third * square + fifth * tf.matmul(square, square), x)
    return tf.transpose(x, [0, 2, 1]) if rows > columns else x
