"""AdamW and Muon with warm-up, decay, gradient clipping and weight averaging, as one guarded update.

Loshchilov & Hutter, "Decoupled weight decay regularization", arXiv 1711.05101.
Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); the size of an update is that of
"Muon is scalable for LLM training", arXiv 2502.16982, section 2.2, so that learning rate and weight decay suit both.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.trainer.engine.schedule import decay_start, peak_learning_rate, warmup_steps

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd polynomial that drives singular values towards 1: after five rounds they lie in 0.7 to 1.2."""
MOMENTUM = 0.95
"""Decay of the sum of gradients that is orthogonalised."""
ROUNDS = 5
UPDATE_RMS = 0.2
"""Root mean square of an update at learning rate 1, about that of AdamW."""


def learning_rate(training: TrainingConfig, step: tf.Tensor) -> tf.Tensor:
    """float32[]: linear warm-up, the peak, then from `decay_start` a cosine down to `final_learning_rate_share` of it.

    Warm-up, stable, decay (WSD, arXiv 2404.06395): before the decay the rate does not depend on `steps`.
    """
    done = tf.cast(step, tf.float32)
    warmup = tf.minimum(1.0, (done + 1.0) / max(warmup_steps(training), 1))
    start = decay_start(training)
    progress = tf.clip_by_value((done - start) / max(training.steps - start, 1), 0.0, 1.0)
    floor = training.final_learning_rate_share
    cosine = floor + (1.0 - floor) * 0.5 * (1.0 + tf.cos(math.pi * progress))
    return peak_learning_rate(training) * warmup * cosine


class Change(NamedTuple):
    """What an update does to one weight."""

    direction: tf.Tensor
    """What is subtracted at learning rate 1."""
    first: tf.Tensor
    """The new first moment."""
    second: tf.Tensor
    """The new second moment."""


class AdamW:
    """Moments and averages of a list of weights, and the update that moves them."""

    def __init__(
        self, weights: Sequence[tf.Variable], training: TrainingConfig, decays: Callable[[tf.Variable], bool]
    ) -> None:
        self.weights = list(weights)
        self.training = training
        self.decays = [decays(weight) for weight in self.weights]
        self.first = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in self.weights]
        self.second = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in self.weights]
        self.averages = [tf.Variable(tf.identity(weight), trainable=False) for weight in self.weights]
        self.updates = tf.Variable(0, dtype=tf.int64, trainable=False)
        """Updates made, without the skipped ones: the exponent of the bias correction."""

    def apply(self, gradients: Sequence[tf.Tensor], rate: tf.Tensor, *, accept: tf.Tensor) -> None:
        """One update at learning rate `rate`; where `accept` is False nothing changes."""
        training = self.training
        count = self.updates + tf.cast(accept, tf.int64)
        power = tf.cast(count, tf.float32)
        # A young average follows the weights closely: the decay grows as (1 + n) / (10 + n).
        decay = tf.minimum(training.ema_decay, (1.0 + power) / (10.0 + power))
        self.updates.assign(count)
        changes = self.changes([tf.where(accept, gradient, 0.0) for gradient in gradients], power)
        for i, (weight, (direction, first, second)) in enumerate(zip(self.weights, changes, strict=True)):
            if self.decays[i]:
                direction += training.weight_decay * weight
            moved = weight - rate * direction
            average = decay * self.averages[i] + (1.0 - decay) * moved
            for variable, value in zip(
                (weight, self.first[i], self.second[i], self.averages[i]), (moved, first, second, average), strict=True
            ):
                variable.assign(tf.where(accept, value, variable))

    def changes(self, gradients: Sequence[tf.Tensor], count: tf.Tensor) -> list[Change]:
        """Directions and new moments; count: float32[], the updates made with this one."""
        training, made = self.training, []
        correction1 = 1.0 - tf.pow(training.adam_beta1, tf.maximum(count, 1.0))
        correction2 = 1.0 - tf.pow(training.adam_beta2, tf.maximum(count, 1.0))
        for i, gradient in enumerate(gradients):
            first = training.adam_beta1 * self.first[i] + (1.0 - training.adam_beta1) * gradient
            second = training.adam_beta2 * self.second[i] + (1.0 - training.adam_beta2) * tf.square(gradient)
            direction = (first / correction1) / (tf.sqrt(second / correction2) + training.adam_epsilon)
            made.append(Change(direction, first, second))
        return made

    def exchange_averages(self) -> None:
        """Swap weights and averages in place; called twice it restores both."""
        for weight, average in zip(self.weights, self.averages, strict=True):
            kept = tf.identity(weight)
            weight.assign(average)
            average.assign(kept)


class Muon(AdamW):
    """As AdamW, but matrices get their momentum, orthogonalised; their second moments stay zero."""

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


def clip_by_group(
    gradients: Sequence[tf.Tensor], groups: Sequence[int], limit: float
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """(gradients with each group clipped to a global norm of `limit`, norms before clipping float32[groups])."""
    norms = tf.stack([
        tf.linalg.global_norm([gradient for gradient, own in zip(gradients, groups, strict=True) if own == group])
        for group in range(max(groups) + 1)
    ])  # fmt: skip
    scales = limit / tf.maximum(norms, limit)
    return [gradient * scales[group] for gradient, group in zip(gradients, groups, strict=True)], norms
