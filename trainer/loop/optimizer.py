"""One guarded update of all weights: warm-up, decay, gradient clipping and weight averaging, by an update rule."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.trainer.loop.objective import Objective
from xtts.trainer.loop.schedule import decay_start, peak_learning_rate, warmup_steps
from xtts.trainer.loop.update_rules import OPTIMIZERS, UpdateRule


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

    def __init__(self, weights: Sequence[tf.Variable], key: Callable[[tf.Variable], tuple[object, ...]]) -> None:
        """key: sorts the weights in the vector, to place those that are treated alike side by side."""
        self._weights = list(weights)
        self._order = sorted(range(len(weights)), key=lambda i: key(weights[i]))
        sizes = [self._weights[i].shape.num_elements() for i in self._order]
        ends = list(itertools.accumulate(sizes))
        self.size = ends[-1]
        """P."""
        self._ranges = {i: slice(end - size, end) for i, size, end in zip(self._order, sizes, ends, strict=True)}

    def flatten(self, arrays: Sequence[tf.Tensor | tf.Variable]) -> tf.Tensor:
        """Concatenate one array for each weight, of its shape -> float32[P]."""
        return tf.concat([tf.reshape(arrays[i], [-1]) for i in self._order], axis=0)

    def split(self, vector: tf.Tensor) -> list[tf.Tensor]:
        """Split float32[P] -> one array for each weight, of its shape."""
        return [tf.reshape(vector[self._ranges[i]], weight.shape) for i, weight in enumerate(self._weights)]

    def parts(self) -> list[tuple[tf.Variable, slice]]:
        """The weights in their order in the vector, and where the numbers of each lie in it."""
        return [(self._weights[i], self._ranges[i]) for i in self._order]

    def mask(self, chosen: Callable[[tf.Variable], bool]) -> tf.Tensor:
        """bool[P]: true for the numbers of the chosen weights."""
        index, mask = tf.range(self.size), tf.zeros([self.size], tf.bool)
        for is_chosen, side_by_side in itertools.groupby(self._order, lambda i: chosen(self._weights[i])):
            ranges = [self._ranges[i] for i in side_by_side]
            if is_chosen:
                mask |= (index >= ranges[0].start) & (index < ranges[-1].stop)
        return mask


def decays(weight: tf.Variable) -> bool:
    """Whether it is a matrix or a filter, which gets weight decay; biases, norms and embeddings do not."""
    return str(weight.name) == "kernel"


def _inside(part: str) -> Callable[[tf.Variable], bool]:
    return lambda weight: part in weight.path


class Optimizer:
    """Weights, their averages, and the update that moves them; `training.optimizer` chooses its rules."""

    def __init__(self, objective: Objective, training: TrainingConfig) -> None:
        self.weights, self.training = list(objective.model.trainable_variables), training
        self._apart = [*objective.metrics.clipped_apart.values()]
        choose = OPTIMIZERS[training.optimizer]
        kinds = list(dict.fromkeys([choose(True), choose(False)]))

        def rule_of(weight: tf.Variable) -> type[UpdateRule]:
            """A matrix or a filter of several channels inside the network is a hidden matrix."""
            inside = decays(weight) and weight.shape[-1] > 1
            return choose(inside and not any(edge in weight.path for edge in objective.edges))

        def group(weight: tf.Variable) -> str:
            return next((part for part in self._apart if part in weight.path), "")

        def key(weight: tf.Variable) -> tuple[object, ...]:
            rule = rule_of(weight)
            return kinds.index(rule), rule.key(weight.shape), not decays(weight), group(weight)

        self.flat = FlatWeights(self.weights, key)
        self.averages = tf.Variable(self.flat.flatten(self.weights), trainable=False)
        self.updates = tf.Variable(0, dtype=tf.int64, trainable=False)
        """Updates made, skipped ones not counted: the exponent of the bias correction."""
        self._rules: list[tuple[UpdateRule, list[tuple[tf.Variable, slice]]]] = []
        for kind, group_of_kind in itertools.groupby(self.flat.parts(), lambda part: rule_of(part[0])):
            parts = [*group_of_kind]
            self._rules.append((kind([weight.shape for weight, _ in parts], training), parts))

    def vectors(self) -> Iterator[tuple[str, tf.Variable, list[tuple[tf.Variable, slice]]]]:
        """(name, vector float32[n], weights whose numbers it holds and where) of the averages and the rules' state."""
        yield "averages", self.averages, self.flat.parts()
        for rule, parts in self._rules:
            first = parts[0][1].start
            own = [(weight, slice(span.start - first, span.stop - first)) for weight, span in parts]
            yield from ((name, vector, own) for name, vector in rule.state.items())

    def clip(self, gradient: tf.Tensor, limit: float) -> tuple[tf.Tensor, tf.Tensor]:
        """Clip each group to a global norm of `limit`: the weights of `clipped_apart`, and before these all others.

        gradient: float32[P] -> (float32[P], norms before clipping float32[groups])
        """
        squares, masks = tf.square(gradient), [self.flat.mask(_inside(part)) for part in self._apart]
        others, apart = squares, [tf.where(mask, squares, 0.0) for mask in masks]
        for mask in masks:
            others = tf.where(mask, 0.0, others)
        norms = tf.sqrt(tf.stack([tf.reduce_sum(part) for part in (others, *apart)]))
        scale, *scales = tf.unstack(limit / tf.maximum(norms, limit))
        for mask, own in zip(masks, scales, strict=True):
            scale = tf.where(mask, own, scale)
        return gradient * scale, norms

    def apply(self, gradient: tf.Tensor, rate: tf.Tensor, *, accept: tf.Tensor) -> None:
        """One update at learning rate `rate`; gradient: float32[P]. Where `accept` is False nothing changes."""
        training = self.training
        count = self.updates + tf.cast(accept, tf.int64)
        power = tf.cast(count, tf.float32)
        # A young average follows the weights closely: the decay grows as (1 + n) / (10 + n).
        decay = tf.minimum(training.ema_decay, (1.0 + power) / (10.0 + power))
        self.updates.assign(count)
        direction, changed = self._direction(tf.where(accept, gradient, 0.0), power)
        weights = self.flat.flatten(self.weights)
        direction += tf.where(self.flat.mask(decays), training.weight_decay * weights, 0.0)
        moved = weights - rate * direction
        average = decay * self.averages + (1.0 - decay) * moved
        for variable, value in (*changed, (self.averages, average)):
            variable.assign(tf.where(accept, value, variable))
        for weight, value in zip(self.weights, self.flat.split(tf.where(accept, moved, weights)), strict=True):
            weight.assign(value)

    def _direction(
        self, gradient: tf.Tensor, count: tf.Tensor
    ) -> tuple[tf.Tensor, list[tuple[tf.Variable, tf.Tensor]]]:
        """(direction float32[P], the new value of each vector of the rules' state)."""
        directions, changed = list[tf.Tensor](), list[tuple[tf.Variable, tf.Tensor]]()
        for rule, parts in self._rules:
            direction, *state = rule.direction(gradient[parts[0][1].start : parts[-1][1].stop], count)
            directions.append(direction)
            changed += zip(rule.state.values(), state, strict=True)
        return tf.concat(directions, axis=0), changed

    def exchange_averages(self) -> None:
        """Swap weights and averages in place; called twice it restores both."""
        kept = self.flat.flatten(self.weights)
        for weight, average in zip(self.weights, self.flat.split(self.averages.read_value()), strict=True):
            weight.assign(average)
        self.averages.assign(kept)
