"""Update rules: how gradients become the direction in which weights move.

Loshchilov & Hutter, "Decoupled weight decay regularization", arXiv 1711.05101.
Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); the size of an update is that of
"Muon is scalable for LLM training", arXiv 2502.16982, section 2.2, so that learning rate and weight decay suit both.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import tensorflow as tf

from xtts.shared.config import TrainingConfig

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the odd polynomial that drives singular values towards 1: after five rounds they are 0.7 to 1.2."""
MOMENTUM = 0.95
"""Decay of the sum of gradients that is orthogonalised."""
ROUNDS = 5
_EPSILON = 1e-8
"""Constant added to the root of AdamW's second moment."""
UPDATE_RMS = 0.2
"""Root mean square of an update at learning rate 1, about that of AdamW."""


class UpdateRule(ABC):
    """Moves some weights, side by side in one vector of n numbers. The optimizer adds weight decay."""

    kept: ClassVar[tuple[str, ...]]
    """Names of the vectors that it keeps from one update to the next, as a checkpoint stores them."""

    def __init__(self, shapes: Sequence[tf.TensorShape], training: TrainingConfig) -> None:
        """shapes: of the weights, in their order in the vector."""
        self.shapes, self.training = shapes, training
        size = sum(shape.num_elements() for shape in shapes)
        self.state = {name: tf.Variable(tf.zeros([size]), trainable=False) for name in self.kept}
        """float32[n] each, zeros at first, in the order of `kept`."""

    @staticmethod
    def key(shape: tf.TensorShape) -> tuple[int, ...]:
        """A key that sorts weights in the vector, before all else."""
        return ()

    @abstractmethod
    def direction(self, gradient: tf.Tensor, count: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """(direction, subtracted from the weights at learning rate 1; the new values of `state`): float32[n] each.

        gradient: float32[n]; count: float32[], the updates made with this one.
        """


class AdamW(UpdateRule):
    """See `UpdateRule`."""

    kept = ("first", "second")

    def direction(self, gradient: tf.Tensor, count: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """See `UpdateRule`."""
        training = self.training
        correction1 = 1.0 - tf.pow(training.adam_beta1, tf.maximum(count, 1.0))
        correction2 = 1.0 - tf.pow(training.adam_beta2, tf.maximum(count, 1.0))
        first = training.adam_beta1 * self.state["first"] + (1.0 - training.adam_beta1) * gradient
        second = training.adam_beta2 * self.state["second"] + (1.0 - training.adam_beta2) * tf.square(gradient)
        return (first / correction1) / (tf.sqrt(second / correction2) + _EPSILON), first, second


class Muon(UpdateRule):
    """Moves matrices by their orthogonalised momentum."""

    kept = ("momentum",)

    @staticmethod
    def key(shape: tf.TensorShape) -> tuple[int, ...]:
        """See `UpdateRule`: puts each shape beside its transpose."""
        matrix = matrix_shape(shape)
        return (*sorted(matrix), *matrix)

    def direction(self, gradient: tf.Tensor, count: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """See `UpdateRule`; products of matrices of one shape, or of its transpose, are computed together."""
        momentum = MOMENTUM * self.state["momentum"] + gradient
        nesterov = gradient + MOMENTUM * momentum
        directions, start = list[tf.Tensor](), 0
        for (_, longer), alike in itertools.groupby(map(matrix_shape, self.shapes), lambda s: tuple(sorted(s))):
            stacks = []
            for (rows, columns), same in itertools.groupby(alike):
                end = start + rows * columns * len([*same])
                stacks.append(tf.reshape(nesterov[start:end], [-1, rows, columns]))
                start = end
            scale = UPDATE_RMS * math.sqrt(longer)
            directions += [tf.reshape(scale * stack, [-1]) for stack in orthogonalise(stacks)]
        return tf.concat(directions, axis=0), momentum


OPTIMIZERS: dict[str, Callable[[bool], type[UpdateRule]]] = {
    "adamw": lambda hidden: AdamW,
    "muon": lambda hidden: Muon if hidden else AdamW,
}
"""The rule of a weight by `training.optimizer`; hidden: whether it is a matrix inside a network."""


def matrix_shape(shape: tf.TensorShape) -> tuple[int, int]:
    """Rows and columns: a filter [K, in, out] is a matrix [K * in, out]."""
    return shape.num_elements() // shape[-1], shape[-1]


def orthogonalise(stacks: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Move all singular values of each matrix near 1, by Newton-Schulz iteration.

    stacks: float32[N, R, C] each, of one shape or its transpose -> the same
    """
    # Transposed to at least as many columns as rows.
    x = tf.concat([_transposed(stack) if stack.shape[1] > stack.shape[2] else stack for stack in stacks], axis=0)
    x /= tf.norm(x, axis=(1, 2), keepdims=True) + 1e-7
    first, third, fifth = COEFFICIENTS
    for _ in range(ROUNDS):
        square = tf.matmul(x, x, transpose_b=True)
        x = first * x + tf.matmul(third * square + fifth * tf.matmul(square, square), x)
    results = tf.split(x, [stack.shape[0] for stack in stacks])
    return [y if y.shape == stack.shape else _transposed(y) for y, stack in zip(results, stacks, strict=True)]


def _transposed(matrices: tf.Tensor) -> tf.Tensor:
    return tf.transpose(matrices, [0, 2, 1])
