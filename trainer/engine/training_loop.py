"""The training loop: many batches in one host call. The graph draws buckets, reads, steps, and takes the times."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np
import tensorflow as tf

from xtts.shared.config import DataConfig, TrainingConfig
from xtts.trainer.data.batch import Batch
from xtts.trainer.data.clip_order import Schedule
from xtts.trainer.data.dataset import ahead_on, training_batches, without_autograph
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.dynamic_baseline import MemoryMaps
from xtts.trainer.engine.metrics import LOSSES, TRAIN_METRICS
from xtts.trainer.engine.optimizer import learning_rate
from xtts.trainer.engine.process_group import ALONE, ProcessGroup, on
from xtts.trainer.engine.train_step import Steps, present_clips
from xtts.trainer.system.device import accelerator

ORDER_DIFFERS = "the devices drew different buckets, or batches of different sizes"


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
    stopped: bool = False
    """True if `stop`, in any process, ended the call."""
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


@dataclass(frozen=True, kw_only=True)
class Position:
    """The run's position in the order of the clips."""

    epoch: tf.Variable
    """int64[]."""
    consumed: tf.Variable
    """int64[K]: clips of each bucket consumed since the start of the run."""


class LoopSteps(Protocol):
    """The interface of the steps that the loop runs; `Steps` implements it for the acoustic model.

    A step is two compiled functions, between which the loop adds up what the first one gives over all replicas.
    """

    training: TrainingConfig
    """The section `training`, which sets the learning-rate schedule."""

    @property
    def step(self) -> tf.Variable:
        """int64[]: updates so far; each step adds one."""

    @property
    def rate(self) -> tf.Variable:
        """float32[]: the learning rate, set before each step."""

    def gradients(self, bucket: int, batch: Batch, *whole: tf.Tensor) -> list[tf.Tensor]:
        """What a batch of a bucket's signature gives, inside the loop's graph; whole: see `Steps`, empty for one."""

    def apply(self, frames: tf.Tensor, total: Sequence[tf.Tensor]) -> tf.Tensor:
        """Update by the sums of `gradients`; frames: useful ones, int32[] -> float32[len(TRAIN_METRICS)]."""


class TrainingLoop:
    """`run(n)` is one call from the host for n batches on all replicas.

    Every process draws the buckets and reads the stream by itself, and parses its own rows. Where clips are stored
    unpadded (the dynamic baseline) the same loop runs in Python, a batch a call, and every new shape is traced.
    """

    exhausted = False
    """True when this process cannot compile another step; a locked loop has compiled all of them."""

    def __init__(
        self, buckets: Sequence[TrainingBucket], data: DataConfig, steps: Sequence[LoopSteps], position: Position,
        group: ProcessGroup = ALONE,
    ) -> None:  # fmt: skip
        """steps: of each replica of this process; of several replicas they are `Steps`."""
        self.buckets = [bucket for bucket in buckets if bucket.trains]
        """Buckets with training clips; a place is an index into this list."""
        self.locked = all(bucket.signature.is_locked for bucket in buckets)
        self.position, self.host_calls, self._steps, self._group = position, 0, steps, group
        several = len(steps) > 1  # the rows of several devices arrive in one batch
        self._device = accelerator() if data.prefetch_to_device and not several else None
        with tf.device("CPU:0"):
            self.stop = tf.Variable(False, trainable=False)
            """Set it from another thread to end the current call, in all processes, after a step."""
            self._whole = tf.Variable([steps[0].step.read_value()] * 2, trainable=False)
            """int64[2]: batches and updates so far, counted once weights and position have changed."""
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
        self._maps = MemoryMaps()
        self._build()

    def _build(self) -> None:
        self._run: Callable[[tf.Tensor], tuple[tf.Tensor, ...]] = self._run_batches
        if self.locked:
            self._run = tf.function(self._run_batches, input_signature=[tf.TensorSpec([], tf.int32)])

    def _rows(self, bucket: TrainingBucket) -> int:
        """Clips of a batch for each replica."""
        return bucket.batch_size // self._group.size

    def _open(self, bucket: TrainingBucket, consumed: int) -> tf.data.Iterator:
        """The batches of one bucket from a position on: the rows of this process."""
        rows, first = self._rows(bucket), self._group.first
        own = range(first * rows, (first + len(self._steps)) * rows) if self._group.size > 1 else None
        return iter(ahead_on(training_batches(bucket, consumed, own), self._device))

    @property
    def closed_set(self) -> list[TrainingBucket]:
        """The buckets whose shape is known, and compiled, before the first batch; none of unpadded clips."""
        return self.buckets if self.locked else []

    def follow(self, training: TrainingConfig) -> None:
        """Take the learning rates of another schedule from here on: the loop is traced again, no step is."""
        for steps in self._steps:
            steps.training = training
        self._build()
        if self.locked:
            self.prepare()

    def prepare(self) -> None:
        """Trace the loop by a call for no batches."""
        self._run(tf.constant(0))

    def run(self, count: int) -> CallResult:
        """Run `count` batches in one graph call; setting `stop` ends it early. Unpadded clips: one batch.

        A stop that no call has passed on is not lost: it ends the next one.
        """
        self.host_calls += 1
        began = time.perf_counter()
        found = self._run(tf.constant(count if self.locked else min(count, 1)))
        stopped, metrics, seconds, places, offsets, *unread = (part.numpy() for part in found)
        if not self.locked:
            self.exhausted = self._maps.nearly_exhausted(cast(Steps, self._steps[0]).guard)
        return CallResult(
            metrics, seconds, places, offsets, time.perf_counter() - began, bool(stopped), *unread
        )  # fmt: skip

    @property
    def whole_step(self) -> int | None:
        """The last step after which weights and position belong together; None if only the weights have changed since.

        A call that fails, because another process has ended, leaves its last whole step.
        """
        batches, updates = self._whole.numpy().tolist()
        return int(batches) if updates == self._steps[0].step.numpy() else None

    def coming(self) -> Iterator[int]:
        """Numbers of the buckets of the next batches, without an end."""
        epoch, consumed = self.position.epoch.read_value(), self.position.consumed.numpy()
        while True:
            with tf.device("CPU:0"):
                epoch, place = self._schedule.draw(epoch, tf.constant(consumed))
            consumed[int(place)] += self._batch_sizes[int(place)]
            yield self.buckets[int(place)].number

    @without_autograph
    def _set_rates(self) -> list[tf.Tensor]:
        rates = []
        for steps, device in zip(self._steps, self._group.devices, strict=True):
            with on(device):
                rates.append(steps.rate.assign(learning_rate(steps.training, steps.step)))
        return rates

    @without_autograph
    def _draw(self) -> tuple[tf.Tensor, ...]:
        """The next batch: (place of its bucket, clips of that consumed before, epoch and clips consumed after it)."""
        with tf.device("CPU:0"):
            before = self.position.consumed.read_value()
            epoch, place = self._schedule.draw(self.position.epoch.read_value(), before)
            taken = tf.one_hot(place, len(self.buckets), dtype=tf.int64) * tf.constant(self._batch_sizes, tf.int64)
            return place, before[place], epoch, before + taken

    @without_autograph
    def _advance(self, epoch: tf.Tensor, consumed: tf.Tensor, metrics: tf.Tensor) -> tf.Tensor:
        """Note the position, once a step is done: where a step fails, the position is still that of the weights."""
        passed = [self.position.epoch.assign(epoch), self.position.consumed.assign(consumed)]
        updates = tf.cast(metrics[TRAIN_METRICS.index("useful_frames")] > 0.0, tf.int64)
        with tf.control_dependencies(passed):
            return self._whole.assign_add(tf.stack([1, updates]))

    @without_autograph
    def _train(self, place: tf.Tensor, epoch: tf.Tensor, consumed: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """One step on all replicas: (metrics, time its batch arrived, time the host had the metrics, stop).

        epoch, consumed: those after it. Times: float64[]. Where records name audio also bool[most clips of a
        batch]: clips that could not be read.
        """
        with tf.device(self._device or "CPU:0"):
            shares = tf.switch_case(place, [lambda k=k: self._read(k) for k in range(len(self.buckets))])
        # A clock has no inputs: only control dependencies place it after the batch and before the step.
        with tf.control_dependencies(tf.nest.flatten(shares)):
            ready = tf.timestamp()
        with tf.control_dependencies([ready]):
            results = self._group.run(lambda number: self._step(place, number, shares[number]))
        with tf.device("CPU:0"):  # waits until the GPU has finished the step, not just queued it
            arrived = [tf.identity(metrics) for metrics, _, _ in results]
            _, stop, present = results[0]
            with tf.control_dependencies(arrived):
                passed = self._advance(epoch, consumed, arrived[0])
            with tf.control_dependencies([passed]):
                done = tf.timestamp()
            if not self._names_audio:
                return arrived[0], ready, done, stop
            here = tf.sequence_mask(tf.constant(self._batch_sizes)[place], self._most)
            return arrived[0], ready, done, stop, here & tf.equal(present, 0.0)

    @without_autograph
    def _read(self, place: int) -> list[Batch]:
        """The rows of the bucket's next batch, for each replica of this process."""
        batch = self._iterators[place].get_next()
        if len(self._steps) == 1:
            return [batch]
        rows = self._rows(self.buckets[place])
        return [Batch(*(part[i * rows : (i + 1) * rows] for part in batch)) for i in range(len(self._steps))]

    @without_autograph
    def _step(self, place: tf.Tensor, number: int, batch: Batch) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """One step on one replica: (metrics, stop, present), the last two as in `_agree`.

        place: the bucket drawn, number: the replica in this process, batch: its rows.
        """
        steps, (frames, present, stop, *counts) = self._steps[number], self._agree(place, number, batch)

        def branch(bucket: TrainingBucket) -> list[tf.Tensor]:
            whole = [*counts, present[: bucket.batch_size]] if counts else []
            return steps.gradients(bucket.number, self._in_shape(bucket, batch), *whole)

        gradients = tf.switch_case(place, [lambda bucket=bucket: branch(bucket) for bucket in self.buckets])
        return steps.apply(frames, self._group.sum(gradients)), stop, present

    def _in_shape(self, bucket: TrainingBucket, batch: Batch) -> Batch:
        """The rows with the shape that left the first `switch_case` unknown."""
        signature = bucket.signature_of(self._rows(bucket) if self.locked else None)
        return Batch(*(tf.ensure_shape(part, spec.shape) for part, spec in zip(batch, signature, strict=True)))

    def _agree(self, place: tf.Tensor, number: int, batch: Batch) -> tuple[tf.Tensor, ...]:
        """Of the whole batch: (useful frames int32[], clips present float32[most of a batch], stop bool[]).

        A single replica has it. Several add up their parts, see that all drew the same bucket, and also give the counts
        of `LOSSES`, float32[len(LOSSES)].
        """
        frames = tf.reduce_sum(batch.mel_length)
        rows = tf.gather(tf.constant([self._rows(bucket) for bucket in self.buckets]), place)
        before = (self._group.first + number) * rows
        present = tf.pad(present_clips(batch), [[before, self._most - before - tf.size(batch.mel_length)]])
        present = tf.ensure_shape(present, [self._most])
        if self._group.size == 1:
            return frames, present, self.stop.read_value()
        drawn = tf.one_hot(place, len(self.buckets))
        counts = cast(Steps, self._steps[number]).counts(batch)
        stop = tf.cast(self.stop.read_value(), tf.float32)
        alone = [stop[tf.newaxis], drawn, counts, tf.cast(frames, tf.float32)[tf.newaxis], present]
        (sums,) = self._group.sum([tf.concat(alone, axis=0)])
        stop, places, counts, frames, present = tf.split(sums, [1, len(self.buckets), len(LOSSES), 1, self._most])
        with tf.control_dependencies([check_places(places, drawn * self._group.size)]):
            return tf.cast(frames[0], tf.int32), tf.identity(present), stop[0] > 0.0, tf.identity(counts)

    def _run_batches(self, count: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The compiled loop over `count` batches."""
        metrics = tf.TensorArray(tf.float32, count, element_shape=[len(TRAIN_METRICS)])
        seconds = tf.TensorArray(tf.float64, count, element_shape=[3])
        places = tf.TensorArray(tf.int32, count, element_shape=[])
        offsets = tf.TensorArray(tf.int64, count, element_shape=[])
        unread = tf.TensorArray(tf.bool, count, element_shape=[self._most])
        i, end, stop = tf.constant(0), tf.timestamp(), tf.constant(False)
        while tf.logical_and(i < count, tf.logical_not(stop)):
            place, offset, epoch, consumed = self._draw()
            rates = self._set_rates()
            with tf.control_dependencies([end, place, *rates]):
                drawn = tf.timestamp()
            with tf.control_dependencies([drawn]):
                values, ready, done, stop, *flags = self._train(place, epoch, consumed)
            spent = tf.stack([drawn - end, ready - drawn, done - ready])
            metrics, seconds = metrics.write(i, values), seconds.write(i, spent)
            places, offsets = places.write(i, place), offsets.write(i, offset)
            unread = unread.write(i, flags[0]) if self._names_audio else unread
            i, end = i + 1, done
        found = (metrics, seconds, places, offsets, *((unread,) if self._names_audio else ()))
        return (stop, *[part.stack()[:i] for part in found])


def check_places(found: tf.Tensor, expected: tf.Tensor) -> tf.Operation:
    """Fail unless the buckets that the replicas drew, float32[K], are all the same one."""
    with tf.device("CPU:0"):
        return tf.debugging.Assert(tf.reduce_all(found == expected), [ORDER_DIFFERS])
