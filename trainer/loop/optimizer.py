"""AdamW and Muon with warm-up, decay, gradient clipping and weight averaging, as one guarded update.

Loshchilov & Hutter, "Decoupled weight decay regularization", arXiv 1711.05101.
Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); the size of an update is that of
"Muon is scalable for LLM training", arXiv 2502.16982, section 2.2, so that learning rate and weight decay suit both.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.trainer.loop.schedule import decay_start, peak_learning_rate, warmup_steps

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the odd polynomial that drives singular values towards 1: after five rounds they are 0.7 to 1.2."""
MOMENTUM = 0.95
"""Decay of the sum of gradients that is orthogonalised."""
ROUNDS = 5
_EPSILON = 1e-8
"""Constant added to the root of AdamW's second moment."""
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


class FlatWeights:
    """All weights as one vector of P numbers: an update then takes a few kernels, not a few for each weight."""

    def __init__(self, weights: Sequence[tf.Variable], key: Callable[[tf.Variable], tuple[int, ...]]) -> None:
        """key: sorts the weights in the vector, to place those that are treated alike side by side."""
        self._shapes = [weight.shape for weight in weights]
        self._order = sorted(range(len(weights)), key=lambda i: key(weights[i]))
        sizes = [self._shapes[i].num_elements() for i in self._order]
        ends = list(itertools.accumulate(sizes))
        self.size = ends[-1]
        """P."""
        self._ranges = {i: range(end - size, end) for i, size, end in zip(self._order, sizes, ends, strict=True)}
        self.starts = [self._ranges[i].start for i in range(len(weights))]
        """Position at which each weight's numbers begin."""

    def flatten(self, arrays: Sequence[tf.Tensor | tf.Variable]) -> tf.Tensor:
        """Concatenate one array for each weight, of its shape -> float32[P]."""
        return tf.concat([tf.reshape(arrays[i], [-1]) for i in self._order], axis=0)

    def split(self, vector: tf.Tensor) -> list[tf.Tensor]:
        """Split float32[P] -> one array for each weight, of its shape."""
        return [tf.reshape(self.numbers_of(vector, [i]), shape) for i, shape in enumerate(self._shapes)]

    def numbers_of(self, vector: tf.Tensor, indices: Sequence[int]) -> tf.Tensor:
        """Take the numbers of weights that lie side by side, in any order: float32[P] -> float32[n]."""
        ranges = [self._ranges[i] for i in indices]
        return vector[min(span.start for span in ranges) : max(span.stop for span in ranges)]

    def mask(self, chosen: Sequence[bool]) -> tf.Tensor:
        """bool[P]: true for the numbers of the chosen weights."""
        index, mask = tf.range(self.size), tf.zeros([self.size], tf.bool)
        for is_chosen, side_by_side in itertools.groupby(self._order, lambda i: chosen[i]):
            ranges = [self._ranges[i] for i in side_by_side]
            if is_chosen:
                mask |= (index >= ranges[0].start) & (index < ranges[-1].stop)
        return mask


class AdamW:
    """Moments and averages of a list of weights, and the update that moves them."""

    def __init__(
        self, weights: Sequence[tf.Variable], training: TrainingConfig, decays: Callable[[tf.Variable], bool],
        clip_group: Callable[[tf.Variable], int] = lambda weight: 0,
        key: Callable[[tf.Variable], tuple[int, ...]] = lambda weight: (),
    ) -> None:  # fmt: skip
        """decays: whether a weight decays; clip_group: 0 or 1, the group in which its gradient is clipped.

        key: sorts the weights in the vectors, before whether they decay and their clip group.
        """
        self.weights = list(weights)
        self.training = training
        self._decays = [decays(weight) for weight in self.weights]
        self._groups = [clip_group(weight) for weight in self.weights]
        self.flat = FlatWeights(self.weights, lambda weight: (*key(weight), not decays(weight), clip_group(weight)))
        self.first = tf.Variable(tf.zeros([self.flat.size]), trainable=False)
        self.second = tf.Variable(tf.zeros([self.flat.size]), trainable=False)
        self.averages = tf.Variable(self.flat.flatten(self.weights), trainable=False)
        self.updates = tf.Variable(0, dtype=tf.int64, trainable=False)
        """Updates made, skipped ones not counted: the exponent of the bias correction."""

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

    def change(self, gradient: tf.Tensor, count: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """(direction, subtracted from the weights at learning rate 1, new first and second moments): float32[P] each.

        gradient: float32[P], count: float32[], the updates made with this one.
        """
        training = self.training
        correction1 = 1.0 - tf.pow(training.adam_beta1, tf.maximum(count, 1.0))
        correction2 = 1.0 - tf.pow(training.adam_beta2, tf.maximum(count, 1.0))
        first = training.adam_beta1 * self.first + (1.0 - training.adam_beta1) * gradient
        second = training.adam_beta2 * self.second + (1.0 - training.adam_beta2) * tf.square(gradient)
        direction = (first / correction1) / (tf.sqrt(second / correction2) + _EPSILON)
        return direction, first, second

    def exchange_averages(self) -> None:
        """Swap weights and averages in place; called twice it restores both."""
        kept = self.flat.flatten(self.weights)
        for weight, average in zip(self.weights, self.flat.split(self.averages.read_value()), strict=True):
            weight.assign(average)
        self.averages.assign(kept)


class Muon(AdamW):
    """AdamW, but matrices move by their orthogonalised momentum; their second moments stay zero."""

    def __init__(
        self, weights: Sequence[tf.Variable], training: TrainingConfig, decays: Callable[[tf.Variable], bool],
        is_hidden_matrix: Callable[[tf.Variable], bool], clip_group: Callable[[tf.Variable], int] = lambda weight: 0,
    ) -> None:  # fmt: skip
        def key(weight: tf.Variable) -> tuple[int, ...]:
            return (0, *_with_its_transpose(matrix_shape(weight))) if is_hidden_matrix(weight) else (1,)

        super().__init__(weights, training, decays, clip_group, key)
        shapes = defaultdict[tuple[int, int], list[int]](list)
        for i, weight in enumerate(self.weights):
            if is_hidden_matrix(weight):
                shapes[matrix_shape(weight)].append(i)
        self._matrices = {shape: shapes[shape] for shape in sorted(shapes, key=_with_its_transpose)}
        """Indices of the matrices by shape, in the order of the vectors."""

    def change(self, gradient: tf.Tensor, count: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """See AdamW; products of matrices of one shape, or of its transpose, are computed together."""
        others, first, second = super().change(gradient, count)
        momentum = MOMENTUM * self.first + gradient
        nesterov = gradient + MOMENTUM * momentum
        directions: list[tf.Tensor] = []
        for (_, longer), shapes in itertools.groupby(self._matrices, key=lambda shape: tuple(sorted(shape))):
            slices = [(shape, self.flat.numbers_of(nesterov, self._matrices[shape])) for shape in shapes]
            stacks = orthogonalise([tf.reshape(matrices, [-1, *shape]) for shape, matrices in slices])
            directions += [tf.reshape(UPDATE_RMS * math.sqrt(longer) * stack, [-1]) for stack in stacks]
        direction = tf.concat(directions, axis=0) if directions else others[:0]
        size = direction.shape[0]
        is_matrix = tf.range(self.flat.size) < size
        moments = tf.where(is_matrix, momentum, first), tf.where(is_matrix, 0.0, second)
        return (tf.concat([direction, others[size:]], axis=0), *moments)


def _with_its_transpose(shape: tuple[int, int]) -> tuple[int, ...]:
    """A sort key that puts each shape beside its transpose."""
    return (*sorted(shape), *shape)


def matrix_shape(weight: tf.Tensor) -> tuple[int, int]:
    """Rows and columns: a filter [K, in, out] is a matrix [K * in, out]."""
    columns = weight.shape[-1]
    return weight.shape.num_elements() // columns, columns


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
