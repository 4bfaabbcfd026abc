"""The graph loops: many batches in one host call. Bucket choice, reading, step and metrics all run inside."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from xtts.shared.cache_spec import CacheSpec
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.trainer.dataset import (
    ahead_on,
    blank_batch,
    bucket_order,
    signatures,
    training_batches,
    validation_batches,
)
from xtts.trainer.device import accelerator
from xtts.trainer.optimizer import learning_rate
from xtts.trainer.order import Schedule
from xtts.trainer.step import LOSSES, TRAIN_METRICS, Steps


class CallResult(NamedTuple):
    """What one host call of n steps brought back."""

    metrics: np.ndarray
    """float32[n, len(TRAIN_METRICS)]."""
    seconds: np.ndarray
    """float64[n, 2]: wall time of each step, and of it the time spent waiting for the input pipeline."""
    buckets: np.ndarray
    """int32[n]: place of each step's bucket in the closed set."""
    offsets: np.ndarray
    """int64[n]: clips of that bucket consumed before the step."""


def check_specs(bucket: int, found: tuple[tf.TensorSpec, ...], expected: list[tf.TensorSpec]) -> None:
    """Refuse a data set whose batches are not of the locked signature."""
    for have, want in zip(found, expected, strict=True):
        if have.shape != want.shape or have.dtype != want.dtype:
            raise LockstepError(
                f"batches of bucket {bucket:02d}",
                found=f"{want.name} {have.dtype.name}{have.shape.as_list()}",
                expected=f"{want.dtype.name}{want.shape.as_list()}",
                fix="the signatures and the batches must come from the same cache.json",
            )


@dataclass(frozen=True, kw_only=True)
class Position:
    """Where the run is in the order of the clips."""

    epoch: tf.Variable
    """int64[]."""
    consumed: tf.Variable
    """int64[K]: clips of each bucket consumed since the start of the run."""


class TrainingLoop:
    """`run(n)` is one entry from the host for n batches."""

    exhausted = False
    """True when this process cannot compile another step; a locked loop has compiled all of them."""

    def __init__(self, cache: Path, spec: CacheSpec, config: Config, sizes: dict[int, int],
                 steps: Steps, position: Position) -> None:  # fmt: skip
        sizes = {number: size for number, size in sizes.items() if spec.buckets[number].train}
        self.sizes, self.position = sizes, position
        self.closed_set = sizes if spec.fixed_length else {}
        """B of every bucket whose shape is known before the first batch."""
        self.host_calls = 0
        self._steps = steps
        self.orders = [
            bucket_order(spec, number, seed=config.training.seed, memory_mb=config.data.shuffle_memory_mb)
            for number in sizes
        ]
        self._signatures = list(signatures(spec, sizes).values())
        self._compiled = [steps.training_steps[number] for number in sizes]
        self._schedule = Schedule(
            seed=config.training.seed,
            clips=tuple(order.clips for order in self.orders),
            batches=tuple(sizes.values()),
        )
        consumed = position.consumed.numpy().tolist()
        device = accelerator() if config.data.prefetch_to_device else None
        self._iterators = [
            iter(ahead_on(training_batches(cache, spec, order, batch_size=sizes[order.bucket], consumed=done), device))
            for order, done in zip(self.orders, consumed, strict=True)
        ]
        for iterator, signature, number in zip(self._iterators, self._signatures, sizes, strict=True):
            check_specs(number, iterator.element_spec, signature)
        self._run = tf.function(
            self._run_batches, input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)]
        )

    def compile(self, place: int) -> None:
        """Compile the step of the `place`-th bucket by running it once on a blank batch."""
        self._run(tf.constant(1), tf.constant(place))

    def run(self, count: int) -> CallResult:
        """Run `count` batches in one call of the graph."""
        self.host_calls += 1
        return CallResult(*(part.numpy() for part in self._run(tf.constant(count), tf.constant(-1))))

    @property
    def graph(self) -> tf.Graph:
        """The traced loop, for tests and the doctor."""
        return self._run.get_concrete_function().graph

    def _branch(self, place: int, blank: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """(metrics, seconds float64[2]) of one batch of one bucket."""
        began = tf.timestamp()
        batch = tf.cond(blank, lambda: blank_batch(self._signatures[place]), lambda: self._iterators[place].get_next())
        ready = tf.timestamp()
        self._steps.rate.assign(learning_rate(self._steps.training, self._steps.step))
        metrics = self._compiled[place](*batch)
        with tf.device("CPU:0"):  # the host has the metrics when a GPU has done the step, not when it was queued
            arrived = tf.identity(metrics)
        with tf.control_dependencies([arrived]):
            return arrived, tf.stack([tf.timestamp() - began, ready - began])

    def _next(self) -> tuple[tf.Tensor, tf.Tensor]:
        """(place of the bucket, its clips consumed so far) of the next batch; moves the position on."""
        with tf.device("CPU:0"):
            epoch, place = self._schedule.draw(self.position.epoch, self.position.consumed)
            offset = self.position.consumed[place]
            self.position.epoch.assign(epoch)
            batches = tf.constant(list(self.sizes.values()), tf.int64)
            self.position.consumed.scatter_nd_add([[place]], [batches[place]])
        return place, offset

    def _run_batches(self, count: tf.Tensor, only: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The loop body proper; with `only` >= 0 it runs that bucket's step on a blank batch instead."""
        metrics = tf.TensorArray(tf.float32, count, element_shape=[len(TRAIN_METRICS)])
        seconds = tf.TensorArray(tf.float64, count, element_shape=[2])
        places = tf.TensorArray(tf.int32, count, element_shape=[])
        offsets = tf.TensorArray(tf.int64, count, element_shape=[])
        blank = only >= 0
        for i in tf.range(count):
            place, offset = tf.cond(blank, lambda: (only, tf.constant(0, tf.int64)), self._next)
            branches = [lambda k=k: self._branch(k, blank) for k in range(len(self._compiled))]
            values, spent = tf.switch_case(place, branches)
            metrics, seconds = metrics.write(i, values), seconds.write(i, spent)
            places, offsets = places.write(i, place), offsets.write(i, offset)
        return metrics.stack(), seconds.stack(), places.stack(), offsets.stack()


HeldOut = tuple[int, list[tuple[int, int]]]
"""A batch of the validation split: its bucket, and (shard, place in it) of each clip."""


class ValidationLoop:
    """`run()` is one entry from the host for the whole validation split."""

    def __init__(self, cache: Path, spec: CacheSpec, sizes: dict[int, int], steps: Steps) -> None:
        self._parts: list[tuple[int, tf.data.Iterator, Callable[..., tf.Tensor]]] = []
        self.batches: list[HeldOut] = []
        for number, size in sizes.items():
            stored = [(s, r) for s, shard in enumerate(spec.buckets[number].validation) for r in range(shard.records)]
            if stored:
                # One endless iterator, always read in whole passes.
                batches = iter(validation_batches(cache, spec, number, batch_size=size).repeat())
                starts = range(0, len(stored), size)
                self._parts.append((len(starts), batches, steps.validation_steps[number]))
                self.batches += [(number, stored[start : start + size]) for start in starts]
        self._run = tf.function(self._sums, input_signature=[])

    @property
    def empty(self) -> bool:
        """True when the cache holds no validation clips."""
        return not self._parts

    def run(self) -> tuple[dict[str, float], list[HeldOut]]:
        """(mean losses over the split, by name; the batches that were left out since their losses are not finite)."""
        sums, finite = (part.numpy() for part in self._run())
        losses = {name: float(sums[i, 0] / sums[i, 1]) if sums[i, 1] else math.nan for i, name in enumerate(LOSSES)}
        return losses, [batch for batch, good in zip(self.batches, finite, strict=True) if not good]

    def _sums(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Sums and counts float64[len(LOSSES), 2] of the finite batches; which batches those are, bool[n]."""
        total = tf.zeros([len(LOSSES), 2], tf.float64)
        finite = tf.TensorArray(tf.bool, len(self.batches), element_shape=[])
        first = 0
        for count, iterator, step in self._parts:
            for i in tf.range(count):
                sums = tf.cast(step(*iterator.get_next()), tf.float64)
                good = tf.reduce_all(tf.math.is_finite(sums))
                total += tf.where(good, sums, 0.0)
                finite = finite.write(first + i, good)
            first += count
        return total, finite.stack()
