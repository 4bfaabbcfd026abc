"""AdamW and Muon with warm-up, decay, gradient clipping and weight averaging, as one guarded update.

Loshchilov & Hutter, "Decoupled weight decay regularization", arXiv 1711.05101.
Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); the size of an update is that of
"Muon is scalable for LLM training", arXiv 2502.16982, section 2.2, so that learning rate and weight decay suit both.
"""

import functools
import itertools
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
    """What an update does to the weights; each part float32[P]."""

    direction: tf.Tensor
    """What is subtracted at learning rate 1."""
    first: tf.Tensor
    """The new first moments."""
    second: tf.Tensor
    """The new second moments."""


class FlatWeights:
    """One vector of P numbers for all weights: an update is then a few kernels, and not some for each weight."""

    def __init__(self, weights: Sequence[tf.Variable], key: Callable[[tf.Variable], tuple[int, ...]]) -> None:
        """key: sorts the weights in the vector; those that are treated alike lie side by side."""
        self._shapes = [weight.shape for weight in weights]
        self._order = sorted(range(len(weights)), key=lambda i: key(weights[i]))
        sizes = [self._shapes[i].num_elements() for i in self._order]
        ends = list(itertools.accumulate(sizes))
        self.size = ends[-1]
        """P."""
        self._ranges = {i: range(end - size, end) for i, size, end in zip(self._order, sizes, ends, strict=True)}

    def flatten(self, parts: Sequence[tf.Tensor | tf.Variable]) -> tf.Tensor:
        """A part for each weight, of its shape -> float32[P]."""
        return tf.concat([tf.reshape(parts[i], [-1]) for i in self._order], axis=0)

    def split(self, vector: tf.Tensor) -> list[tf.Tensor]:
        """float32[P] -> a part for each weight, of its shape."""
        return [tf.reshape(self.part(vector, [i]), shape) for i, shape in enumerate(self._shapes)]

    def part(self, vector: tf.Tensor, places: Sequence[int]) -> tf.Tensor:
        """The numbers of weights that lie side by side: float32[P] -> float32[n]; places: in any order."""
        ranges = [self._ranges[i] for i in places]
        return vector[min(own.start for own in ranges) : max(own.stop for own in ranges)]

    def mask(self, chosen: Sequence[bool]) -> tf.Tensor:
        """bool[P]: true for the numbers of the weights chosen."""
        ranges: list[range] = []
        for own in (self._ranges[i] for i in self._order if chosen[i]):
            joined = ranges and ranges[-1].stop == own.start
            ranges[-1:] = [range(ranges[-1].start, own.stop)] if joined else [*ranges[-1:], own]
        place = tf.range(self.size)
        inside = [(place >= own.start) & (place < own.stop) for own in ranges]
        return functools.reduce(tf.logical_or, inside, tf.zeros([self.size], tf.bool))


class AdamW:
    """Moments and averages of a list of weights, and the update that moves them."""

    def __init__(
        self, weights: Sequence[tf.Variable], training: TrainingConfig, decays: Callable[[tf.Variable], bool],
        clip_group: Callable[[tf.Variable], int] = lambda weight: 0,
    ) -> None:  # fmt: skip
        """decays: whether a weight decays; clip_group: 0 or 1, with which others its gradient is clipped."""
        self.weights = list(weights)
        self.training = training
        self._decays = [decays(weight) for weight in self.weights]
        self._groups = [clip_group(weight) for weight in self.weights]
        self.flat = FlatWeights(
            self.weights, lambda weight: (*self._key(weight), not decays(weight), clip_group(weight))
        )
        self.first = tf.Variable(tf.zeros([self.flat.size]), trainable=False)
        self.second = tf.Variable(tf.zeros([self.flat.size]), trainable=False)
        self.averages = tf.Variable(self.flat.flatten(self.weights), trainable=False)
        self.updates = tf.Variable(0, dtype=tf.int64, trainable=False)
        """Updates made, without the skipped ones: the exponent of the bias correction."""

    def _key(self, weight: tf.Variable) -> tuple[int, ...]:
        """Sorts the weights in the vectors, before whether they decay and how they are clipped."""
        return ()

    def clip(self, gradient: tf.Tensor, limit: float) -> tuple[tf.Tensor, tf.Tensor]:
        """Clip each group to a global norm of `limit`.

        gradient: float32[P] -> (float32[P], norms before clipping float32[2])
        """
        second = self.flat.mask([group == 1 for group in self._groups])
        squares = tf.square(gradient)
        sums = [tf.reduce_sum(tf.where(second, 0.0, squares)), tf.reduce_sum(tf.where(second, squares, 0.0))]
        norms = tf.sqrt(tf.stack(sums))
        scales = limit / tf.maximum(norms, limit)
        return gradient * tf.where(second, scales[1], scales[0]), norms

    def apply(self, gradient: tf.Tensor, rate: tf.Tensor, *, accept: tf.Tensor) -> None:
        """One update at learning rate `rate`; gradient: float32[P]. Where `accept` is False nothing changes."""
        training = self.training
        count = self.updates + tf.cast(accept, tf.int64)
        power = tf.cast(count, tf.float32)
        # A young average follows the weights closely: the decay grows as (1 + n) / (10 + n).
        decay = tf.minimum(training.ema_decay, (1.0 + power) / (10.0 + power))
        self.updates.assign(count)
        direction, first, second = self.change(tf.where(accept, gradient, 0.0), power)
        weights = self.flat.flatten(self.weights)
        direction += tf.where(self.flat.mask(self._decays), training.weight_decay * weights, 0.0)
        moved = weights - rate * direction
        average = decay * self.averages + (1.0 - decay) * moved
        for variable, value in ((self.first, first), (self.second, second), (self.averages, average)):
            variable.assign(tf.where(accept, value, variable))
        for weight, value in zip(self.weights, self.flat.split(tf.where(accept, moved, weights)), strict=True):
            weight.assign(value)

    def change(self, gradient: tf.Tensor, count: tf.Tensor) -> Change:
        """Direction and new moments; gradient: float32[P], count: float32[], the updates made with this one."""
        training = self.training
        correction1 = 1.0 - tf.pow(training.adam_beta1, tf.maximum(count, 1.0))
        correction2 = 1.0 - tf.pow(training.adam_beta2, tf.maximum(count, 1.0))
        first = training.adam_beta1 * self.first + (1.0 - training.adam_beta1) * gradient
        second = training.adam_beta2 * self.second + (1.0 - training.adam_beta2) * tf.square(gradient)
        direction = (first / correction1) / (tf.sqrt(second / correction2) + training.adam_epsilon)
        return Change(direction, first, second)

    def exchange_averages(self) -> None:
        """Swap weights and averages in place; called twice it restores both."""
        kept = self.flat.flatten(self.weights)
        for weight, average in zip(self.weights, self.flat.split(self.averages.read_value()), strict=True):
            weight.assign(average)
        self.averages.assign(kept)


class Muon(AdamW):
    """As AdamW, but matrices get their momentum, orthogonalised; their second moments stay zero."""

    def __init__(
        self, weights: Sequence[tf.Variable], training: TrainingConfig, decays: Callable[[tf.Variable], bool],
        is_hidden_matrix: Callable[[tf.Variable], bool], clip_group: Callable[[tf.Variable], int] = lambda weight: 0,
    ) -> None:  # fmt: skip
        self._is_matrix = is_hidden_matrix
        super().__init__(weights, training, decays, clip_group)
        shapes = defaultdict[tuple[int, int], list[int]](list)
        for i, weight in enumerate(self.weights):
            if is_hidden_matrix(weight):
                shapes[matrix_shape(weight)].append(i)
        self._places = {shape: shapes[shape] for shape in sorted(shapes, key=_with_its_transpose)}
        """Of the matrices, by shape, in the order of the vectors."""

    def _key(self, weight: tf.Variable) -> tuple[int, ...]:
        return (0, *_with_its_transpose(matrix_shape(weight))) if self._is_matrix(weight) else (1,)

    def change(self, gradient: tf.Tensor, count: tf.Tensor) -> Change:
        """See AdamW; products of matrices of one shape, or of its transpose, are computed together."""
        adamw = super().change(gradient, count)
        momentum = MOMENTUM * self.first + gradient
        nesterov = gradient + MOMENTUM * momentum
        made: list[tf.Tensor] = []
        for (_, longer), shapes in itertools.groupby(self._places, key=lambda shape: tuple(sorted(shape))):
            parts = [(shape, self.flat.part(nesterov, self._places[shape])) for shape in shapes]
            found = orthogonalise([tf.reshape(part, [-1, *shape]) for shape, part in parts])
            made += [tf.reshape(UPDATE_RMS * math.sqrt(longer) * matrices, [-1]) for matrices in found]
        direction = tf.concat(made, axis=0) if made else adamw.direction[:0]
        size = direction.shape[0]
        is_matrix = tf.range(self.flat.size) < size
        return Change(
            tf.concat([direction, adamw.direction[size:]], axis=0),
            tf.where(is_matrix, momentum, adamw.first),
            tf.where(is_matrix, 0.0, adamw.second),
        )


def _with_its_transpose(shape: tuple[int, int]) -> tuple[int, ...]:
    """Sorts shapes so that each lies beside its transpose."""
    return (*sorted(shape), *shape)


def matrix_shape(weight: tf.Tensor) -> tuple[int, int]:
    """Rows and columns: a filter [K, in, out] is a matrix [K * in, out]."""
    columns = weight.shape[-1]
    return weight.shape.num_elements() // columns, columns


def orthogonalise(stacks: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Each matrix with all its singular values near 1, by Newton-Schulz.

    stacks: float32[N, R, C] each, of one shape or its transpose -> the same
    """
    # With at least as many columns as rows.
    x = tf.concat([_turned(stack) if stack.shape[1] > stack.shape[2] else stack for stack in stacks], axis=0)
    x /= tf.norm(x, axis=(1, 2), keepdims=True) + 1e-7
    first, third, fifth = COEFFICIENTS
    for _ in range(ROUNDS):
        square = tf.matmul(x, x, transpose_b=True)
        x = first * x + tf.matmul(third * square + fifth * tf.matmul(square, square), x)
    parts = tf.split(x, [stack.shape[0] for stack in stacks])
    return [part if part.shape == stack.shape else _turned(part) for part, stack in zip(parts, stacks, strict=True)]


def _turned(matrices: tf.Tensor) -> tf.Tensor:
    return tf.transpose(matrices, [0, 2, 1])
