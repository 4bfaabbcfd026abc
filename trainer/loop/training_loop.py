"""The training loop: many batches in one host call. The graph draws buckets, reads, steps and keeps the times.

The device never waits for the host. A step is launched while the one before it runs: the next bucket is drawn, and its
batch is read, before the metrics of the step before have arrived. TensorFlow's automatic control dependencies would
end every turn of the loop before the next begins, so this graph has none: every order that matters is written here.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.trainer.data.batch import AnyBatch, is_locked, with_tensors
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.data.training_bucket import TrainingBucket, bucket_schedule
from xtts.trainer.loop.chunk import CallResult, StoredBatch
from xtts.trainer.loop.optimizer import learning_rate
from xtts.trainer.loop.process_group import ALONE, ProcessGroup
from xtts.trainer.loop.train_step import StepFunctions

HOST = "CPU:0"
"""Device of the loop itself: draws, batches, clocks, its variables and its results."""
ORDER_DIFFERS = "the devices drew different buckets, or batches of different sizes"


@dataclass(frozen=True, kw_only=True)
class Position:
    """The run's position in the order of the clips."""

    epoch: tf.Variable
    """int64[]."""
    consumed: tf.Variable
    """int64[K]: clips of each bucket consumed since the start of the run."""


class _Turn(NamedTuple):
    """The state that a turn of the loop passes to the next."""

    index: tf.Tensor
    """int32[]: turns of this call so far."""
    steps: tf.Tensor
    """int64[]: of the run."""
    epoch: tf.Tensor
    consumed: tf.Tensor
    """Clips consumed, as in `Position`."""
    stop: tf.Tensor
    read: tf.Tensor
    """float64[]: time when the last batch was read."""
    launched: list[tf.Tensor]
    """int32[] for each replica of this process, available once its step is queued on its device."""
    before: tf.Tensor
    """float64[]: time when the metrics of the step before the last arrived."""
    arrived: tf.Tensor
    """float64[]: time when the metrics of the last step arrived."""
    rows: tuple[tf.TensorArray, ...]
    """The arrays of a `CallResult`."""


class TrainingLoop:
    """`run(n)` is one call from the host for n batches on all replicas.

    Every process draws the buckets and reads the stream by itself, and parses its own rows. Where clips are stored
    unpadded (the dynamic baseline) the same loop runs in Python, a batch a call, and every new shape is traced.
    """

    def __init__(
        self, buckets: Sequence[TrainingBucket], step_functions: Sequence[StepFunctions],
        position: Position, group: ProcessGroup = ALONE,
    ) -> None:
        """step_functions: of each replica of this process.

        A model of your own needs only their `metrics`, `training`, `step`, `gradients` and `apply`. Variables must
        change inside the last two only: the loop's own graph orders nothing by itself.
        """
        self.buckets = [bucket for bucket in buckets if bucket.trains]
        """Buckets with training clips, which the graph refers to by their index in this list."""
        self.locked = all(is_locked(bucket.signature) for bucket in buckets)
        self.position, self.host_calls, self._step_functions, self._group = position, 0, step_functions, group
        with tf.device(HOST):
            self.stopping = tf.Variable(False, trainable=False)
            """Whether a stop was requested in this process; it ends the call of all processes."""
            done = step_functions[0].step.read_value()
            self._progress = tf.Variable(
                tf.stack([done, position.epoch, *tf.unstack(position.consumed)]), trainable=False
            )
            """int64[2 + K]: steps and position after the last step whose metrics have arrived. One variable, so that
            a call that fails in the middle cannot change only some of them."""
        self._batch_sizes = [bucket.batch_size for bucket in self.buckets]
        self._schedule = bucket_schedule(self.buckets, step_functions[0].training.seed)
        consumed = position.consumed.numpy().tolist()
        self._iterators = [self._open(bucket, done) for bucket, done in zip(self.buckets, consumed, strict=True)]
        self._build()

    def _build(self) -> None:
        self._run: Callable[[tf.Tensor], tuple[tf.Tensor, ...]] = self._run_batches
        if self.locked:  # not a `tf.function`, which adds automatic control dependencies
            self._run = tf.compat.v1.wrap_function(self._run_batches, [tf.TensorSpec([], tf.int32)])

    def _rows(self, bucket: TrainingBucket) -> int:
        """Clips of a batch for each replica."""
        return bucket.batch_size // self._group.size

    def _open(self, bucket: TrainingBucket, consumed: int) -> tf.data.Iterator:
        """The rows of this process in the batches of one bucket, from a position on."""
        rows, first = self._rows(bucket), self._group.first
        share = range(first * rows, (first + len(self._step_functions)) * rows) if self._group.size > 1 else None
        return iter(training_batches(bucket, consumed, share))

    @property
    def epoch(self) -> int:
        """Epoch of the last step, from 0."""
        return int(self.position.epoch.numpy())

    @property
    def traces(self) -> int:
        """Traces of training steps so far."""
        return self._step_functions[0].guard.count("training")

    def batch(self, index: int, offset: int) -> StoredBatch:
        """The batch of a bucket after so many of its clips."""
        return self.buckets[index].batch_after(offset)

    def stop(self) -> None:
        """End the current call after a step, from any thread; between two calls, the next one."""
        self.stopping.assign(True)

    def follow(self, training: TrainingConfig) -> None:
        """Switch to the learning rates of another schedule: the loop is traced again, no step is."""
        for step_functions in self._step_functions:
            step_functions.training = training
        self._build()
        self.prepare()

    def prepare(self) -> None:
        """Trace the loop by a call for no batches."""
        self._run(tf.constant(0))

    def run(self, count: int) -> CallResult:
        """Run `count` batches in one graph call; a stop ends it early. Unpadded clips: one batch."""
        self.host_calls += 1
        began = time.perf_counter()
        tensors = self._run(tf.constant(count if self.locked else min(count, 1)))
        self._note_position()
        stopped, metrics, seconds, indices, offsets = (tensor.numpy() for tensor in tensors)
        return CallResult(metrics, seconds, indices, offsets, time.perf_counter() - began, bool(stopped))

    def _note_position(self) -> None:
        _, epoch, *consumed = self._progress.numpy()
        self.position.epoch.assign(epoch)
        self.position.consumed.assign(consumed)

    def last_whole_step(self) -> int:
        """The last step done, with the position moved to it.

        A call that fails, because another process has ended or a shard is damaged, leaves weights up to two steps ahead
        of the position, which is recorded once the metrics have arrived.
        """
        recorded, epoch, *consumed = self._progress.numpy().tolist()
        done = int(self._step_functions[0].step.numpy())
        for _ in range(done - recorded):
            _, _, epoch, consumed = self._draw(tf.constant(epoch, tf.int64), tf.constant(consumed, tf.int64))
        self._progress.assign([done, epoch, *consumed])
        self._note_position()
        return done

    def _draw(self, epoch: tf.Tensor, consumed: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Draw a batch: (index of its bucket, clips of that consumed before, epoch and clips consumed after it)."""
        epoch, index = self._schedule.draw(epoch, consumed)
        taken = tf.one_hot(index, len(self.buckets), dtype=tf.int64) * tf.constant(self._batch_sizes, tf.int64)
        return index, consumed[index], epoch, consumed + taken

    def _read(self, index: int) -> list[AnyBatch]:
        """The rows of the bucket's next batch, for each replica of this process."""
        batch = self._iterators[index].get_next()
        if len(self._step_functions) == 1:
            return [batch]
        rows = self._rows(self.buckets[index])
        starts = range(0, rows * len(self._step_functions), rows)
        return [with_tensors(batch, [x[start : start + rows] for x in batch]) for start in starts]

    def _step(
        self, index: tf.Tensor, rate: tf.Tensor, replica: int, batch: AnyBatch
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Step on one replica: (metrics, stop as in `_agree`, launched).

        index: of the drawn bucket; replica: its index in this process, batch: its rows; launched: as in `_Turn`.
        """
        frames, stop, *counts = self._agree(index, replica, batch)
        step_functions = self._step_functions[replica]

        def branch(bucket: TrainingBucket) -> list[tf.Tensor]:
            return step_functions.gradients(bucket.number, self._in_shape(bucket, batch), *counts)

        with tf.device(self._group.devices[replica]):
            gradients = tf.switch_case(index, [lambda bucket=bucket: branch(bucket) for bucket in self.buckets])
            total = self._group.sum(gradients)
            with tf.control_dependencies(total):
                metrics = step_functions.apply(frames, rate, total)
            # int32 lies in the host's memory: it is available once the GPU has queued the step, done or not.
            with tf.control_dependencies([metrics]):
                launched = tf.identity(index)
        return metrics, stop, launched

    def _in_shape(self, bucket: TrainingBucket, batch: AnyBatch) -> AnyBatch:
        """Set the shape of the rows, which the `switch_case` of `_read` left unknown."""
        signature = bucket.signature_of(self._rows(bucket) if self.locked else None)
        pairs = zip(batch, signature, strict=True)
        return with_tensors(batch, [tf.ensure_shape(tensor, spec.shape) for tensor, spec in pairs])

    def _agree(self, index: tf.Tensor, replica: int, batch: AnyBatch) -> tuple[tf.Tensor, ...]:
        """(useful frames int32[], stop bool[]) of the whole batch.

        Several replicas add up their shares, check that all drew the same bucket, and also return the counts of the
        losses, float32[K].
        """
        frames = tf.reduce_sum(batch.mel_length)
        if self._group.size == 1:
            with tf.control_dependencies([index]):
                return frames, self.stopping.read_value()
        drawn = tf.one_hot(index, len(self.buckets))
        counts = self._step_functions[replica].counts(batch)
        with tf.control_dependencies([index]):
            stop = tf.cast(self.stopping.read_value(), tf.float32)
        own = [stop[tf.newaxis], drawn, counts, tf.cast(frames, tf.float32)[tf.newaxis]]
        (sums,) = self._group.sum([tf.concat(own, axis=0)])
        stop, drawn_by_all, counts, frames = tf.split(sums, [1, len(self.buckets), counts.shape[0], 1])
        with tf.device(HOST):
            same = tf.debugging.Assert(tf.reduce_all(drawn_by_all == drawn * self._group.size), [ORDER_DIFFERS])
        with tf.control_dependencies([same]):
            return tf.cast(frames[0], tf.int32), stop[0] > 0.0, tf.identity(counts)

    def _turn(self, last: _Turn) -> _Turn:
        """Draw, read and launch a step; record the one before it when its metrics arrive."""
        index, offset, epoch, consumed = self._draw(last.epoch, last.consumed)
        rate = learning_rate(self._step_functions[0].training, last.steps)
        # At most two steps are on their way to a device, and one batch waits for them.
        with tf.control_dependencies([index, rate, last.read, last.before]):
            drawn = tf.timestamp()
        with tf.control_dependencies([drawn]):
            shares = tf.switch_case(index, [lambda k=k: self._read(k) for k in range(len(self.buckets))])
        with tf.control_dependencies(tf.nest.flatten(shares)):
            read = tf.timestamp()
        with tf.control_dependencies([read, *last.launched]):
            index, shares = tf.identity(index), tf.nest.map_structure(tf.identity, shares)
        results = self._group.run(lambda replica: self._step(index, rate, replica, shares[replica]))
        metrics, (stop, *_), launched = map(list, zip(*results, strict=True))
        on_host = [tf.identity(values) for values in metrics]  # waits until a GPU has finished the step
        with tf.control_dependencies([last.arrived, *on_host]):
            metrics_of_step = tf.identity(on_host[0])
            recorded = self._progress.assign(tf.stack([last.steps + 1, epoch, *tf.unstack(consumed)]))
        with tf.control_dependencies([recorded]):
            arrived = tf.timestamp()
        begin = tf.maximum(drawn, last.arrived)
        ready = tf.maximum(read, begin)
        seconds = tf.stack([begin - last.arrived, ready - begin, arrived - ready])
        values = [metrics_of_step, seconds, index, offset]
        rows = tuple(row.write(last.index, value) for row, value in zip(last.rows, values, strict=True))
        return _Turn(
            index=last.index + 1, steps=last.steps + 1, epoch=epoch, consumed=consumed, stop=stop, read=read,
            launched=launched, before=last.arrived, arrived=arrived, rows=rows,
        )

    def _run_batches(self, count: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The compiled loop over `count` batches: (stop, the arrays of a `CallResult`)."""
        values = len(self._step_functions[0].metrics.step)
        kinds = [(tf.float32, [values]), (tf.float64, [3]), (tf.int32, []), (tf.int64, [])]
        with tf.device(HOST):
            now, (steps, epoch, *consumed) = tf.timestamp(), tf.unstack(self._progress.read_value())
            first = _Turn(
                index=tf.constant(0), steps=steps, epoch=epoch, consumed=tf.stack(consumed),
                stop=tf.constant(False), read=now, launched=[tf.constant(0) for _ in self._step_functions], before=now,
                arrived=now, rows=tuple(tf.TensorArray(kind, count, element_shape=shape) for kind, shape in kinds),
            )
            (last,) = tf.while_loop(
                lambda turn: (turn.index < count) & ~turn.stop, lambda turn: (self._turn(turn),), (first,)
            )
            with tf.control_dependencies([last.arrived]):
                return (tf.identity(last.stop), *[row.stack()[: last.index] for row in last.rows])
