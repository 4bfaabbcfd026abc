"""The validation loop: the whole split in one host call."""

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from xtts.trainer.data.batch import is_locked
from xtts.trainer.data.dataset import validation_batches
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.loop.chunk import StoredBatch
from xtts.trainer.loop.process_group import ALONE, ProcessGroup
from xtts.trainer.loop.train_step import StepFunctions

BucketBatches = tuple[range, tf.data.Iterator, Callable[..., tf.Tensor]]
"""Batches of one bucket: the position of each one's first clip in the bucket, their iterator and their step."""


def split_batches(buckets: Sequence[TrainingBucket]) -> list[StoredBatch]:
    """The batches of the validation split, in order."""
    batches: list[StoredBatch] = []
    for bucket in (bucket for bucket in buckets if bucket.validates):
        stored = [(s, r) for s, records in enumerate(bucket.validation_records) for r in range(records)]
        starts = range(0, len(stored), bucket.batch_size)
        batches += [(bucket.number, stored[start : start + bucket.batch_size]) for start in starts]
    return batches


def replica_batches(
    buckets: Sequence[TrainingBucket], step_functions: StepFunctions, replica: int, replicas: int
) -> list[BucketBatches]:
    """The batches of one replica: every `replicas`-th of `split_batches`, from index `replica` on."""
    shares, before = list[BucketBatches](), 0
    for bucket in (bucket for bucket in buckets if bucket.validates):
        clips, first = sum(bucket.validation_records), (replica - before) % replicas
        starts = range(first * bucket.batch_size, clips, replicas * bucket.batch_size)
        if starts:
            # One endless iterator, read in whole passes.
            batches = iter(validation_batches(bucket).shard(replicas, first).repeat())
            shares.append((starts, batches, step_functions.validation_steps[bucket.number]))
        before += -(-clips // bucket.batch_size)
    return shares


class ValidationLoop:
    """`run()` is one call from the host for the whole validation split.

    Each replica takes its share of the batches; the sums are added up at the end. stop: bool[]; set from another
    thread, it ends this process' share after the current batch, and so the validation in all processes.
    """

    def __init__(
        self, buckets: Sequence[TrainingBucket], step_functions: Sequence[StepFunctions], stop: tf.Variable,
        group: ProcessGroup = ALONE,
    ) -> None:
        """step_functions: of each replica of this process."""
        self._step_functions, self._stop, self._group = step_functions, stop, group
        self.batches = split_batches(buckets)
        numbered = list(enumerate(step_functions, group.first))
        self._indices = [[*range(replica, len(self.batches), group.size)] for replica, _ in numbered]
        self._shares = [replica_batches(buckets, own, replica, group.size) for replica, own in numbered]
        self._run: Callable[[], tuple[tf.Tensor, ...]] = self._sums  # unpadded clips: in Python, batch by batch
        if all(is_locked(bucket.signature) for bucket in buckets):
            self._run = tf.function(self._sums, input_signature=[])

    def run(self) -> tuple[dict[str, float], list[StoredBatch]] | None:
        """(mean losses over the split by name, batches excluded because their losses are not finite).

        None if `stop` ended it before the last batch; do not call it again then.
        """
        sums, finite, done = (tensor.numpy() for tensor in self._run())
        if done < len(self.batches):
            return None
        means = (float(total / count) if count else math.nan for total, count in sums)
        losses = dict(zip(self._step_functions[0].metrics.held_out, means, strict=True))
        return losses, [batch for batch, is_finite in zip(self.batches, finite, strict=True) if not is_finite]

    def _sums(self) -> tuple[tf.Tensor, ...]:
        """(sums and counts of the finite batches, which are finite, batches done) of all replicas.

        float64[V, 2], bool[n], int32[].
        """
        sums, finite, done = self._group.run(self._share)[0]
        return sums, finite > 0.0, tf.cast(done, tf.int32)

    def _share(self, replica: int) -> list[tf.Tensor]:
        """Validate the share of one replica of this process, and sum over all replicas: as `_sums`, float64 each."""
        total, done = tf.zeros([len(self._step_functions[0].metrics.held_out), 2], tf.float64), tf.constant(0)
        indices = self._indices[replica]
        flags = tf.TensorArray(tf.bool, len(indices), element_shape=[])
        for starts, iterator, step in self._shares[replica]:
            for first in tf.range(starts.start, starts.stop, starts.step):
                if self._stop:
                    break
                batch = iterator.get_next()
                with tf.device(self._group.devices[replica]):
                    sums = step(*batch, first)
                sums = tf.cast(sums, tf.float64)
                finite = tf.reduce_all(tf.math.is_finite(sums))
                total += tf.where(finite, sums, 0.0)
                flags, done = flags.write(done, finite), done + 1
        own = tf.cast(flags.stack(), tf.float64)
        rows = tf.reshape(tf.constant(indices, tf.int32), [-1, 1])
        scattered = tf.scatter_nd(rows, own, [len(self.batches)])
        return self._group.sum([total, scattered, tf.cast(done, tf.float64)])
