"""The training loop: many batches in one host call. The graph draws buckets, reads, steps, and takes the times."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np
import tensorflow as tf

from xtts.shared.config import DataConfig, TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch import Batch
from xtts.trainer.data.clip_order import Schedule
from xtts.trainer.data.dataset import ahead_on, training_batches, without_autograph
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.metrics import TRAIN_METRICS
from xtts.trainer.engine.optimizer import learning_rate
from xtts.trainer.system.device import accelerator


class CallResult(NamedTuple):
    """Result of one host call: n steps, fewer than requested if `stop` was set."""

    metrics: np.ndarray
    """float32[n, len(TRAIN_METRICS)]."""
    seconds: np.ndarray
    """float64[n, 3]: seconds of the loop's own work (drawing the bucket, the learning rate), of the wait for the batch,
    and of the step until the host has its metrics."""
    buckets: np.ndarray
    """int32[n]: index of each step's bucket among those of the loop."""
    offsets: np.ndarray
    """int64[n]: clips of that bucket consumed before the step."""
    wall: float
    """Seconds of the whole call, measured on the host."""
    unread: np.ndarray | None = None
    """bool[n, most clips of a batch]: clips whose audio could not be read; None where the cache holds mels."""

    @property
    def step_seconds(self) -> np.ndarray:
        """float64[n]: seconds from the end of one step to the end of the next."""
        return np.asarray(self.seconds.sum(axis=1))

    @property
    def wait_seconds(self) -> np.ndarray:
        """float64[n]: part of `step_seconds` spent waiting for the input pipeline."""
        return self.seconds[:, 1]


def check_specs(bucket: int, found: Batch, expected: Batch) -> None:
    """Raise `LockstepError` for a data set whose batches do not have the locked signature."""
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
    """The run's position in the order of the clips."""

    epoch: tf.Variable
    """int64[]."""
    consumed: tf.Variable
    """int64[K]: clips of each bucket consumed since the start of the run."""


class LoopSteps(Protocol):
    """The interface of the steps that the loop runs; `Steps` implements it for the acoustic model."""

    training: TrainingConfig
    """The section `training`, which sets the learning-rate schedule."""

    @property
    def step(self) -> tf.Variable:
        """int64[]: updates so far; each step adds one."""

    @property
    def rate(self) -> tf.Variable:
        """float32[]: the learning rate, set before each step."""

    def train(self, bucket: int, batch: Batch) -> tf.Tensor:
        """One step on a batch of a bucket's signature, inside the loop's graph: float32[len(TRAIN_METRICS)]."""


class TrainingLoop:
    """`run(n)` is one call from the host for n batches."""

    exhausted = False
    """True when this process cannot compile another step; a locked loop has compiled all of them."""

    def __init__(
        self, buckets: Sequence[TrainingBucket], data: DataConfig, steps: LoopSteps, position: Position
    ) -> None:
        self.buckets = [bucket for bucket in buckets if bucket.trains]
        """Buckets with training clips; a place is an index into this list."""
        self.position, self.host_calls, self._steps = position, 0, steps
        self._device = accelerator() if data.prefetch_to_device else None
        with tf.device("CPU:0"):
            self.stop = tf.Variable(False, trainable=False)
            """Set it from another thread to end the current call after the current step."""
        self._batch_sizes = [bucket.batch_size for bucket in self.buckets]
        self._most = max(self._batch_sizes)
        """Clips of the largest batch."""
        self._names_audio = self.buckets[0].spec.names_audio
        self._schedule = Schedule(
            seed=self.buckets[0].order.seed,
            clips=tuple(bucket.order.clips for bucket in self.buckets),
            batches=tuple(self._batch_sizes),
        )
        consumed = position.consumed.numpy().tolist()
        self._iterators = [self._open(bucket, done) for bucket, done in zip(self.buckets, consumed, strict=True)]
        self._run = tf.function(self._run_batches, input_signature=[tf.TensorSpec([], tf.int32)])

    def _open(self, bucket: TrainingBucket, consumed: int) -> tf.data.Iterator:
        """The batches of one bucket from a position on."""
        batches = iter(ahead_on(training_batches(bucket, consumed), self._device))
        check_specs(bucket.number, batches.element_spec, bucket.signature)
        return batches

    @property
    def closed_set(self) -> list[TrainingBucket]:
        """The buckets whose shape is known, and compiled, before the first batch."""
        return self.buckets

    def follow(self, training: TrainingConfig) -> None:
        """Take the learning rates of another schedule from here on: the loop is traced again, no step is."""
        for steps in self._all_steps:
            steps.training = training
        self._run = tf.function(self._run_batches, input_signature=[tf.TensorSpec([], tf.int32)])
        if self.closed_set:
            self.prepare()

    @property
    def _all_steps(self) -> Sequence[LoopSteps]:
        return [self._steps]

    def prepare(self) -> None:
        """Trace the loop by a call for no batches."""
        self._run(tf.constant(0))

    def run(self, count: int) -> CallResult:
        """Run `count` batches in one graph call; setting `stop` ends it early."""
        self.host_calls += 1
        self._forget_stop()
        began = time.perf_counter()
        metrics, seconds, places, offsets, *unread = (part.numpy() for part in self._run(tf.constant(count)))
        return CallResult(metrics, seconds, places, offsets, time.perf_counter() - began, *unread)

    def _forget_stop(self) -> None:
        """Before a call: a stop was for the one before."""
        self.stop.assign(False)

    @property
    def graph(self) -> tf.Graph:
        """The traced loop, for tests."""
        return self._run.get_concrete_function().graph

    @without_autograph
    def _set_rate(self) -> tf.Tensor:
        return self._steps.rate.assign(learning_rate(self._steps.training, self._steps.step))

    @without_autograph
    def _next(self) -> tuple[tf.Tensor, tf.Tensor]:
        """(place of the bucket, its clips consumed so far) of the next batch; advances the position."""
        with tf.device("CPU:0"):
            epoch, place = self._schedule.draw(self.position.epoch, self.position.consumed)
            offset = self.position.consumed[place]
            self.position.epoch.assign(epoch)
            batches = tf.constant(self._batch_sizes, tf.int64)
            self.position.consumed.scatter_nd_add([[place]], [batches[place]])
        return place, offset

    @without_autograph
    def _train(self, place: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """`_branch` of the bucket drawn."""
        branches = [lambda k=k: self._branch(k) for k in range(len(self.buckets))]
        return cast(tuple[tf.Tensor, ...], tf.switch_case(place, branches))

    @without_autograph
    def _branch(self, place: int) -> tuple[tf.Tensor, ...]:
        """Run one bucket's step: (metrics, time its batch arrived, time the host had the metrics); times float64[].

        Where records name audio also bool[most clips of a batch]: clips that could not be read.
        """
        batch = self._iterators[place].get_next()
        # A clock has no inputs: only control dependencies place it after the batch and before the step.
        with tf.control_dependencies(batch):
            ready = tf.timestamp()
        with tf.control_dependencies([ready]):
            metrics = self._steps.train(self.buckets[place].number, batch)
        with tf.device("CPU:0"):  # waits until the GPU has finished the step, not just queued it
            arrived = tf.identity(metrics)
        with tf.control_dependencies([arrived]):
            done = tf.timestamp()
        if not self._names_audio:
            return arrived, ready, done
        with tf.device("CPU:0"):
            unread = tf.equal(batch.mel_length, 0)
            return arrived, ready, done, tf.pad(unread, [[0, self._most - self._batch_sizes[place]]])

    @without_autograph
    def _goes_on(self, end: tf.Tensor) -> tf.Tensor:
        """False once `stop` is set; read after the step that ended at `end`."""
        with tf.control_dependencies([end]):
            return tf.logical_not(self.stop.read_value())

    def _run_batches(self, count: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The compiled loop over `count` batches."""
        metrics = tf.TensorArray(tf.float32, count, element_shape=[len(TRAIN_METRICS)])
        seconds = tf.TensorArray(tf.float64, count, element_shape=[3])
        places = tf.TensorArray(tf.int32, count, element_shape=[])
        offsets = tf.TensorArray(tf.int64, count, element_shape=[])
        unread = tf.TensorArray(tf.bool, count, element_shape=[self._most])
        i, end = tf.constant(0), tf.timestamp()
        while tf.logical_and(i < count, self._goes_on(end)):
            place, offset = self._next()
            rate = self._set_rate()
            with tf.control_dependencies([end, place, rate]):
                drawn = tf.timestamp()
            with tf.control_dependencies([drawn]):
                values, ready, done, *flags = self._train(place)
            spent = tf.stack([drawn - end, ready - drawn, done - ready])
            metrics, seconds = metrics.write(i, values), seconds.write(i, spent)
            places, offsets = places.write(i, place), offsets.write(i, offset)
            unread = unread.write(i, flags[0]) if self._names_audio else unread
            i, end = i + 1, done
        found = (metrics, seconds, places, offsets, *((unread,) if self._names_audio else ()))
        return tuple(part.stack()[:i] for part in found)
