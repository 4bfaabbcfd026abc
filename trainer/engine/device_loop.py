"""The loops of a run on several devices: each step and each validation is shared by all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tensorflow as tf

from xtts.shared.config import DataConfig
from xtts.trainer.data.batch import Batch
from xtts.trainer.data.dataset import ahead_on, training_batches, without_autograph
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.device_steps import DeviceSteps
from xtts.trainer.engine.devices import Devices
from xtts.trainer.engine.metrics import LOSSES
from xtts.trainer.engine.optimizer import learning_rate
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.engine.training_loop import TrainingLoop, check_specs
from xtts.trainer.engine.validation_loop import ValidationLoop, validation_parts

ORDER_DIFFERS = "the devices drew different buckets, or batches of different sizes"


@dataclass(frozen=True, kw_only=True)
class Replica:
    """The whole model on one device of this process."""

    device: str
    state: TrainState
    steps: DeviceSteps


class DeviceLoop(TrainingLoop):
    """`run(n)` is one call from the host for n batches on all devices.

    Every process draws the buckets and reads the stream by itself, and parses its own rows. `stop` in one process ends
    the call in all of them, after the step in which its flag was summed.
    """

    def __init__(
        self, buckets: Sequence[TrainingBucket], data: DataConfig, replicas: Sequence[Replica], devices: Devices
    ) -> None:
        self._replicas, self._devices = replicas, devices
        with tf.device("CPU:0"):
            self._stopped = tf.Variable(False, trainable=False)
        super().__init__(buckets, data, replicas[0].steps, replicas[0].state.position)

    @property
    def stopped(self) -> bool:
        """True if the last call was ended by `stop` in any process."""
        return bool(self._stopped.numpy())

    def _forget_stop(self) -> None:
        """Keep `stop`: a call too short to pass it on must not lose it."""
        self._stopped.assign(False)

    @property
    def _all_steps(self) -> Sequence[DeviceSteps]:
        return [replica.steps for replica in self._replicas]

    def _rows(self, bucket: TrainingBucket) -> int:
        """Clips of a batch for each device."""
        return bucket.batch_size // self._devices.count

    def _open(self, bucket: TrainingBucket, consumed: int) -> tf.data.Iterator:
        rows, places = self._rows(bucket), len(self._replicas)
        own = range(self._devices.first * rows, (self._devices.first + places) * rows)
        device = self._device if places == 1 else None  # the rows of several devices arrive in one batch
        batches = iter(ahead_on(training_batches(bucket, consumed, own), device))
        check_specs(bucket.number, batches.element_spec, replace(bucket, batch_size=len(own)).signature)
        return batches

    @without_autograph
    def _set_rate(self) -> tf.Tensor:
        rates = []
        for replica in self._replicas:
            with tf.device(replica.device):
                steps = replica.steps
                rates.append(steps.rate.assign(learning_rate(steps.training, steps.step)))
        with tf.control_dependencies(rates):
            return tf.no_op()

    @without_autograph
    def _goes_on(self, end: tf.Tensor) -> tf.Tensor:
        """False once all processes know of a `stop`; read after the step that ended at `end`."""
        with tf.control_dependencies([end]):
            return tf.logical_not(self._stopped.read_value())

    @without_autograph
    def _train(self, place: tf.Tensor) -> tuple[tf.Tensor, ...]:
        shares = tf.switch_case(place, [lambda k=k: self._read(k) for k in range(len(self.buckets))])
        with tf.control_dependencies(tf.nest.flatten(shares)):
            ready = tf.timestamp()
        with tf.control_dependencies([ready]):
            results = self._devices.run(lambda number: self._step(place, number, *shares[number]))
        with tf.device("CPU:0"):
            arrived = [tf.identity(metrics) for metrics, _, _ in results]
            _, stop, present = results[0]
            stopped = self._stopped.assign(stop > 0.0)
            here = tf.sequence_mask(tf.constant(self._batch_sizes)[place], self._most)
        with tf.control_dependencies([*arrived, stopped]):
            return arrived[0], ready, tf.timestamp(), here & tf.equal(present, 0.0)

    @without_autograph
    def _read(self, place: int) -> list[tuple[Batch, tf.Tensor]]:
        """(its rows of the bucket's next batch, their counts) for each device of this process."""
        rows, batch = self._rows(self.buckets[place]), self._iterators[place].get_next()
        shares = [Batch(*(part[i * rows : (i + 1) * rows] for part in batch)) for i in range(len(self._replicas))]
        return [
            (own, replica.steps.counts(own, self._most)) for own, replica in zip(shares, self._replicas, strict=True)
        ]

    @without_autograph
    def _step(self, place: tf.Tensor, number: int, batch: Batch, own: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """One step on one device: (metrics, float32[] above 0 once a process is to stop, clips present).

        place: the bucket drawn, number: the device in this process, batch and own: from `_read`. The clips present are
        those of all devices, float32[most clips of a batch].
        """
        drawn = tf.one_hot(place, len(self.buckets))
        stop = tf.cast(self.stop.read_value(), tf.float32)[tf.newaxis]
        sums = self._devices.sum(tf.concat([stop, drawn, own], axis=0))
        stopped, places, counts, frames, present = tf.split(sums, [1, len(self.buckets), len(LOSSES), 1, self._most])
        steps = self._replicas[number].steps
        with tf.control_dependencies([check_places(places, drawn * self._devices.count)]):
            branches = [
                lambda bucket=bucket: steps.gradients(
                    bucket.number, self._locked(bucket, batch), counts, present[: bucket.batch_size]
                )
                for bucket in self.buckets
            ]
            gradients = tf.switch_case(place, branches)
        total = self._devices.sum(gradients)
        return steps.apply(total, tf.cast(frames[0], tf.int32)), stopped[0], present

    def _locked(self, bucket: TrainingBucket, batch: Batch) -> Batch:
        """The rows with the shape that left the `switch_case` unknown."""
        signature = replace(bucket, batch_size=self._rows(bucket)).signature
        return Batch(*(tf.ensure_shape(part, spec.shape) for part, spec in zip(batch, signature, strict=True)))


def check_places(found: tf.Tensor, expected: tf.Tensor) -> tf.Operation:
    """Fail unless the buckets that the devices drew, float32[K], are all the same one."""
    with tf.device("CPU:0"):
        return tf.debugging.Assert(tf.reduce_all(found == expected), [ORDER_DIFFERS])


class DeviceValidation(ValidationLoop):
    """Each device takes its share of the batches, by their numbers; the sums are added up at the end.

    `stop` in one process ends that one's share, and the validation in all.
    """

    def __init__(
        self, buckets: Sequence[TrainingBucket], replicas: Sequence[Replica], devices: Devices, stop: tf.Variable
    ) -> None:
        self._devices = devices
        self._describe(buckets, stop)
        numbers = range(devices.first, devices.first + len(replicas))
        self._shares = [
            validation_parts(buckets, replica.steps, device=number, devices=devices.count)
            for number, replica in zip(numbers, replicas, strict=True)
        ]
        self._numbers = [[*range(number, len(self.batches), devices.count)] for number in numbers]
        self._run = tf.function(self._all_sums, input_signature=[])

    def _forget_stop(self) -> None:
        """Keep `stop`, as `DeviceLoop` does."""

    def _all_sums(self) -> tuple[tf.Tensor, ...]:
        """`_sums` of all devices."""
        total = self._devices.run(self._share)[0]
        sums, flags, done = tf.split(total, [2 * len(LOSSES), len(self.batches) * (1 + self._most), 1])
        flags = tf.reshape(flags, [len(self.batches), 1 + self._most]) > 0.0
        sums, done = tf.reshape(sums, [len(LOSSES), 2]), tf.cast(done[0], tf.int32)
        return sums, flags[:, 0], done, *([flags[:, 1:]] if self._names_audio else [])

    def _share(self, number: int) -> tf.Tensor:
        """The sum over all devices of their sums, flags of batches and number of batches done, float64.

        The flags of each batch: finite, then its blank clips.
        """
        sums, finite, done, *blank = self._sums_over(self._shares[number])
        places = tf.reshape(tf.constant(self._numbers[number], tf.int32), [-1, 1])
        flags = tf.cast(tf.concat([finite[:, tf.newaxis], *blank], axis=1), tf.float64)
        placed = tf.scatter_nd(places, flags, [len(self.batches), 1 + self._most])
        parts = [tf.reshape(part, [-1]) for part in (sums, placed, tf.cast(done, tf.float64))]
        return self._devices.sum(tf.concat(parts, axis=0))
