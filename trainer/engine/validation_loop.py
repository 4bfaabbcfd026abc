"""The validation loop: the whole split in one host call."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from xtts.trainer.data.batch import is_locked
from xtts.trainer.data.dataset import validation_batches
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.dynamic_baseline import MemoryMaps
from xtts.trainer.engine.process_group import ALONE, ProcessGroup
from xtts.trainer.engine.train_step import Steps

HeldOut = tuple[int, list[tuple[int, int]]]
"""A batch of the validation split: its bucket, and the (shard, record) of each clip."""


BucketPart = tuple[range, tf.data.Iterator, Callable[..., tf.Tensor]]
"""The batches of one bucket: the number of each one's first clip in the bucket, their iterator and their step."""


def held_out(buckets: Sequence[TrainingBucket]) -> list[HeldOut]:
    """The batches of the validation split, in order."""
    batches: list[HeldOut] = []
    for bucket in (bucket for bucket in buckets if bucket.validates):
        stored = [(s, r) for s, records in enumerate(bucket.validation_records) for r in range(records)]
        starts = range(0, len(stored), bucket.batch_size)
        batches += [(bucket.number, stored[start : start + bucket.batch_size]) for start in starts]
    return batches


def validation_parts(buckets: Sequence[TrainingBucket], steps: Steps, replica: int, replicas: int) -> list[BucketPart]:
    """The batches of one replica: of those of `held_out` each `replicas`-th, from number `replica` on."""
    parts, before = list[BucketPart](), 0
    for bucket in (bucket for bucket in buckets if bucket.validates):
        clips, own = sum(bucket.validation_records), (replica - before) % replicas
        starts = range(own * bucket.batch_size, clips, replicas * bucket.batch_size)
        if starts:
            # One endless iterator, read in whole passes.
            batches = iter(validation_batches(bucket).shard(replicas, own).repeat())
            parts.append((starts, batches, steps.validation_steps[bucket.number]))
        before += -(-clips // bucket.batch_size)
    return parts


class ValidationLoop:
    """`run()` is one call from the host for the whole validation split.

    Each replica takes its share of the batches, by their numbers; the sums are added up at the end.
    stop: bool[]; set from another thread, it ends this process' share after the current batch, and the validation in
    all processes.
    """

    def __init__(
        self, buckets: Sequence[TrainingBucket], steps: Sequence[Steps], stop: tf.Variable,
        group: ProcessGroup = ALONE,
    ) -> None:  # fmt: skip
        """steps: of each replica of this process."""
        self._steps, self._stop, self._group, self.batches = steps, stop, group, held_out(buckets)
        self._most = max((len(places) for _, places in self.batches), default=0)
        """Clips of the largest batch."""
        self.unread: list[HeldOut] = []
        """Clips whose audio could not be read in the last call."""
        self._names_audio = any(bucket.spec.names_audio for bucket in buckets)
        self._numbers = [
            [*range(number, len(self.batches), group.size)] for number in range(group.first, group.first + len(steps))
        ]
        self._parts = [
            validation_parts(buckets, one, number, group.size) for number, one in enumerate(steps, group.first)
        ]
        self._maps: MemoryMaps | None = None
        self._run: Callable[[], tuple[tf.Tensor, ...]] = self._sums
        if all(is_locked(bucket.signature) for bucket in buckets):
            self._run = tf.function(self._sums, input_signature=[])
        else:  # in Python, batch by batch
            self._maps = MemoryMaps()

    @property
    def empty(self) -> bool:
        """True when the cache holds no validation clips."""
        return not self.batches

    def run(self) -> tuple[dict[str, float], list[HeldOut]] | None:
        """(mean losses over the split by name, batches excluded because their losses are not finite).

        None where `stop` ended it before the last batch; do not call it again then.
        """
        sums, finite, padded, done = (part.numpy() for part in self._run())
        if done < len(self.batches):
            return None
        self.unread = list(_flagged(self.batches, padded)) if self._names_audio else []
        means = (float(total / count) if count else math.nan for total, count in sums)
        losses = dict(zip(self._steps[0].metrics.held_out, means, strict=True))
        return losses, [batch for batch, good in zip(self.batches, finite, strict=True) if not good]

    def _sums(self) -> tuple[tf.Tensor, ...]:
        """Of all replicas: (sums and counts of the finite batches, which are finite, padding rows, batches done).

        float64[V, 2], bool[n], bool[n, most clips of a batch], int32[].
        """
        sums, flags, done = self._group.run(self._share)[0]
        return sums, flags[:, 0] > 0.0, flags[:, 1:] > 0.0, tf.cast(done, tf.int32)

    def _share(self, number: int) -> list[tf.Tensor]:
        """The sums over all replicas of what each of them found in its batches: as `_sums`, all of them float64.

        number: the replica in this process. The flags of each batch are: finite, then its rows without a clip.
        """
        total, done = tf.zeros([len(self._steps[0].metrics.held_out), 2], tf.float64), tf.constant(0)
        places = self._numbers[number]
        flags = tf.TensorArray(tf.bool, len(places), element_shape=[1 + self._most])
        for starts, iterator, step in self._parts[number]:
            for first in tf.range(starts.start, starts.stop, starts.step):
                if self._stop:
                    break
                batch = iterator.get_next()
                if self._maps is not None:
                    self._maps.check(self._steps[0].guard)
                with tf.device(self._group.devices[number]):
                    found = step(*batch, first)
                sums = tf.cast(found, tf.float64)
                good = tf.reduce_all(tf.math.is_finite(sums))
                total += tf.where(good, sums, 0.0)
                length = batch.mel_length[: self._most]
                padded = tf.pad(tf.equal(length, 0), [[0, self._most - tf.size(length)]])
                flags, done = flags.write(done, tf.concat([good[tf.newaxis], padded], axis=0)), done + 1
        marks = tf.cast(flags.stack(), tf.float64)
        rows = tf.reshape(tf.constant(places, tf.int32), [-1, 1])
        placed = tf.scatter_nd(rows, marks, [len(self.batches), 1 + self._most])
        return self._group.sum([total, placed, tf.cast(done, tf.float64)])


def _flagged(batches: list[HeldOut], flags: np.ndarray) -> Iterator[HeldOut]:
    """The clips of each batch that have a flag, bool[n, most clips of a batch]; padding rows are none."""
    for (bucket, places), marked in zip(batches, flags, strict=True):
        found = [place for place, mark in zip(places, marked, strict=False) if mark]
        if found:
            yield bucket, found
