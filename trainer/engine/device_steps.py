"""The steps of one device among several: the gradients of its rows, and an update by their sum over all devices."""

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import cast

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.trainer.data.batch import Batch
from xtts.trainer.engine.metrics import LOSSES
from xtts.trainer.engine.optimizer import AdamW
from xtts.trainer.engine.train_step import Steps, locked, present_clips, random_inputs, training_step
from xtts.trainer.model.acoustic_model import AcousticModel


class DeviceSteps(Steps):
    """Steps of device `device` of `devices`; they compute what `Steps` does on the whole batch.

    No collective is inside a compiled function: the loop adds up counts and gradients between them.
    """

    def __init__(
        self, model: AcousticModel, optimizer: AdamW, training: TrainingConfig, step: tf.Variable, *,
        typical: tuple[float, float], device: int, devices: int,
    ) -> None:  # fmt: skip
        super().__init__(model, optimizer, training, step, typical=typical)
        self._device, self._devices = device, devices
        self._parts = training.gradient_accumulation_steps // devices
        self._sizes = [weight.shape.num_elements() for weight in optimizer.weights]

    def trace(
        self, training: Mapping[int, Batch], validation: Mapping[int, Batch] = MappingProxyType({}), *,
        traced: Callable[[str, Callable[[], None]], None] = lambda name, call: None,
    ) -> None:  # fmt: skip
        """As `Steps.trace`; training: signatures of this device's rows.

        Concrete functions: TensorFlow would trace a `tf.function` again inside `strategy.run`.
        """
        super().trace(training, validation, traced=traced)
        self._concrete_update = cast(Callable[..., tf.Tensor], self.update.get_concrete_function())
        self.gradient_steps = {n: step.get_concrete_function() for n, step in self.gradient_steps.items()}  # type: ignore[attr-defined]
        self.validation_steps = {n: step.get_concrete_function() for n, step in self.validation_steps.items()}  # type: ignore[attr-defined]

    def counts(self, batch: Batch, most: int) -> tf.Tensor:
        """Of this device's rows: the counts of `LOSSES`, useful frames, clips present: float32[len(LOSSES) + 1 + most].

        most: clips of the largest whole batch; each device has the places of its rows among them, the others are 0.
        """
        counts = self.model.loss_counts(*batch[2:5], micro_batches=self._parts, least=0.0)
        frames = tf.cast(tf.reduce_sum(batch.mel_length), tf.float32)
        size = batch.mel.shape[0]
        before = self._device * size
        present = tf.pad(present_clips(batch), [[before, most - before - size]])
        return tf.concat([tf.stack([*(counts[name] for name in LOSSES), frames]), present], axis=0)

    def gradients(self, bucket: int, batch: Batch, counts: tf.Tensor, present: tf.Tensor) -> tf.Tensor:
        """Gradients of this device's rows, one after another, then its losses: float32[N].

        Of the whole batch: counts, float32[len(LOSSES)], by which the losses are divided, present: `present_clips`.
        """
        return cast(tf.Tensor, self.gradient_steps[bucket](*batch, counts, present)[0])

    def apply(self, total: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
        """Update by the sum of all devices' `gradients`; frames int32[], useful ones -> float32[len(TRAIN_METRICS)]."""
        return cast(tf.Tensor, self._concrete_update(total, frames))

    @cached_property
    def update(self) -> tf.types.experimental.PolymorphicFunction:
        """(sum of all devices' `gradients` float32[N], useful frames int32[]) -> float32[len(TRAIN_METRICS)]."""

        def update(total: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
            *gradients, losses = tf.split(total, [*self._sizes, len(LOSSES)])
            weights = self.optimizer.weights
            shaped = [tf.reshape(part, weight.shape) for part, weight in zip(gradients, weights, strict=True)]
            return self._update(losses, frames, *shaped)

        signature = [tf.TensorSpec([sum(self._sizes) + len(LOSSES)], tf.float32), tf.TensorSpec([], tf.int32)]
        return tf.function(update, input_signature=signature, jit_compile=True, autograph=False)

    def _gradient_step(self, bucket: int, signature: Batch) -> Callable[..., list[tf.Tensor]]:
        def gradient_step(*inputs: tf.Tensor) -> list[tf.Tensor]:
            *rows, counts, present = inputs
            batch = Batch(*rows)
            self.guard.note(training_step(bucket), batch)
            losses, gradients = self.own_part(self.with_mel(batch), counts, present)
            return [tf.concat([*(tf.reshape(gradient, [-1]) for gradient in gradients), losses], axis=0)]

        counts = tf.TensorSpec([len(LOSSES)], tf.float32, "counts")
        present = tf.TensorSpec([signature.mel.shape[0] * self._devices], tf.float32, "present")
        return cast(Callable[..., list[tf.Tensor]], locked(gradient_step, (*signature, counts, present)))

    def own_part(self, batch: Batch, counts: tf.Tensor, present: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """(losses float32[len(LOSSES)], gradients) that these rows add to those of the whole batch.

        counts, present: as for `gradients`.
        """
        divisors = dict(zip(LOSSES, tf.unstack(tf.maximum(counts, 1.0)), strict=True))
        random = random_inputs(batch, self.seed, self.step, device=self._device, present=present)
        first, second = tf.unstack(random.dropout)
        random = random._replace(dropout=tf.stack([first + self._device * self._parts, second]))
        return self._add_parts(batch, random, divisors, self._parts)
