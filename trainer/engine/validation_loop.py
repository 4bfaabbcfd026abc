"""The validation loop: the whole split in one host call."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import tensorflow as tf

from xtts.trainer.data.dataset import validation_batches
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.metrics import LOSSES

HeldOut = tuple[int, list[tuple[int, int]]]
"""A batch of the validation split: its bucket, and the (shard, record) of each clip."""


class LossSteps(Protocol):
    """The interface of the steps that the loop runs; `Steps` implements it for the acoustic model."""

    @property
    def validation_steps(self) -> Mapping[int, Callable[..., tf.Tensor]]:
        """By bucket: `Batch`, number int32[] of its first clip in the split -> float32[len(LOSSES), 2]."""


Part = tuple[range, tf.data.Iterator, Callable[..., tf.Tensor]]
"""The batches of one bucket: the number of each one's first clip in the bucket, their iterator and their step."""


def held_out(buckets: Sequence[TrainingBucket]) -> list[HeldOut]:
    """The batches of the validation split, in order."""
    batches: list[HeldOut] = []
    for bucket in (bucket for bucket in buckets if bucket.validates):
        stored = [(s, r) for s, records in enumerate(bucket.validation_records) for r in range(records)]
        starts = range(0, len(stored), bucket.batch_size)
        batches += [(bucket.number, stored[start : start + bucket.batch_size]) for start in starts]
    return batches


def validation_parts(
    buckets: Sequence[TrainingBucket], steps: LossSteps, *, device: int = 0, devices: int = 1
) -> list[Part]:
    """The batches of one device: of those of `held_out` each `devices`-th, from number `device` on."""
    parts, before = list[Part](), 0
    for bucket in (bucket for bucket in buckets if bucket.validates):
        clips, own = sum(bucket.validation_records), (device - before) % devices
        starts = range(own * bucket.batch_size, clips, devices * bucket.batch_size)
        if starts:
            # One endless iterator, read in whole passes.
            batches = iter(validation_batches(bucket).shard(devices, own).repeat())
            parts.append((starts, batches, steps.validation_steps[bucket.number]))
        before += -(-clips // bucket.batch_size)
    return parts


class ValidationLoop:
    """`run()` is one call from the host for the whole validation split.

    stop: bool[]; set from another thread, it ends the current call after the current batch.
    """

    unread: Sequence[HeldOut] = ()
    """Clips whose audio the last pass could not read."""

    def __init__(self, buckets: Sequence[TrainingBucket], steps: LossSteps, stop: tf.Variable) -> None:
        self._describe(buckets, stop)
        self._parts = validation_parts(buckets, steps)
        self._run = tf.function(self._sums, input_signature=[])

    def _describe(self, buckets: Sequence[TrainingBucket], stop: tf.Variable) -> None:
        """Note what the validation of one device and that of several have in common."""
        self._stop, self.batches = stop, held_out(buckets)
        self._names_audio = any(bucket.spec.names_audio for bucket in buckets)
        self._most = max((len(places) for _, places in self.batches), default=0) if self._names_audio else 0

    @property
    def empty(self) -> bool:
        """True when the cache holds no validation clips."""
        return not self.batches

    def run(self) -> tuple[dict[str, float], list[HeldOut]] | None:
        """(mean losses over the split by name, batches excluded because their losses are not finite).

        None where `stop` ended it before the last batch; do not call it again then.
        """
        self._forget_stop()
        sums, finite, done, *blank = (part.numpy() for part in self._run())
        if done < len(self.batches):
            return None
        self.unread = list(_flagged(self.batches, blank[0])) if blank else []
        losses = {name: float(sums[i, 0] / sums[i, 1]) if sums[i, 1] else math.nan for i, name in enumerate(LOSSES)}
        return losses, [batch for batch, good in zip(self.batches, finite, strict=True) if not good]

    def _forget_stop(self) -> None:
        """Before a call: a stop was for the one before."""
        self._stop.assign(False)

    def _sums(self) -> tuple[tf.Tensor, ...]:
        """(sums and counts of the finite batches float64[len(LOSSES), 2], which are finite bool[n], batches done).

        Where records name audio also the blank clips, bool[n, most clips of a batch].
        """
        return self._sums_over(self._parts)

    def _sums_over(self, parts: Sequence[Part]) -> tuple[tf.Tensor, ...]:
        """`_sums` of the batches of some parts."""
        total, done = tf.zeros([len(LOSSES), 2], tf.float64), tf.constant(0)
        batches = sum(len(starts) for starts, _, _ in parts)
        finite = tf.TensorArray(tf.bool, batches, element_shape=[])
        blank = tf.TensorArray(tf.bool, batches, element_shape=[self._most])
        for starts, iterator, step in parts:
            for first in tf.range(starts.start, starts.stop, starts.step):
                if self._stop:
                    break
                batch = iterator.get_next()
                sums = tf.cast(step(*batch, first), tf.float64)
                if self._names_audio:
                    length = batch.mel_length[: self._most]
                    blank = blank.write(done, tf.pad(tf.equal(length, 0), [[0, self._most - tf.size(length)]]))
                good = tf.reduce_all(tf.math.is_finite(sums))
                total += tf.where(good, sums, 0.0)
                finite, done = finite.write(done, good), done + 1
        return total, finite.stack(), done, *([blank.stack()] if self._names_audio else [])


def _flagged(batches: list[HeldOut], flags: np.ndarray) -> Iterator[HeldOut]:
    """The clips of each batch that have a flag, bool[n, most clips of a batch]; blanks that fill a batch are none."""
    for (bucket, places), marked in zip(batches, flags, strict=True):
        found = [place for place, mark in zip(places, marked, strict=False) if mark]
        if found:
            yield bucket, found
