"""The locked steps: one `tf.function(input_signature=..., jit_compile=True)` per bucket, from one body.

A relaxed signature (clips stored at own length, the baseline) gives a step that is traced anew for every shape.
Nothing else in the trainer computes a loss or moves a weight.
"""

from collections.abc import Callable, Iterable
from typing import cast

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.acoustic_model import AcousticModel
from xtts.trainer.dataset import Batch
from xtts.trainer.optimizer import AdamW
from xtts.trainer.order import fold

TRAIN_METRICS = ("loss", "prior", "flow", "duration", "gradient_norm", "learning_rate", "skipped", "useful_frames")
"""What one training step returns, float32[8], in this order."""
LOSSES = ("prior", "flow", "duration")

_NOISE, _TIME, _DROPOUT = 10, 11, 12
"""Constants folded into a step's key; they follow those of order.py."""


class TraceGuard:
    """Counts traces; after `lock()` a further one is an error that shows the specs."""

    def __init__(self) -> None:
        self.traces: list[str] = []
        self.locked = False

    def lock(self) -> None:
        """Close the set of signatures."""
        self.locked = True

    def count(self, kind: str) -> int:
        """Traces of `training` or `validation` steps."""
        return sum(trace.startswith(kind) for trace in self.traces)

    def note(self, name: str, batch: Batch) -> None:
        """Called by a step's body, which Python runs only while tracing."""
        found = ", ".join(f"{part.dtype.name}{part.shape.as_list()}" for part in batch)
        if self.locked:
            raise LockstepError(
                name,
                found=f"a new trace with ({found})",
                expected="one of the closed set: " + "; ".join(self.traces),
                fix="every batch must come from the cache that the signatures were derived from",
            )
        self.traces.append(f"{name} ({found})")


def random_inputs(batch: Batch, seed: tf.Tensor | int, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """(noise float32[B, T, M], time float32[B], dropout key int32[2]) of a step, keyed by (seed, step)."""
    mel = batch[1]
    noise = tf.random.stateless_normal(mel.shape, fold(seed, _NOISE, step), alg="philox")
    clips = mel.shape[0]
    # Stratified times: one in each of B equal parts of [0, 1), so that a batch covers the whole path.
    jitter = tf.random.stateless_uniform([clips], fold(seed, _TIME, step), alg="philox")
    time = (tf.range(clips, dtype=tf.float32) + jitter) / clips
    return noise, time, tf.cast(fold(seed, _DROPOUT, step) & 0x7FFFFFFF, tf.int32)


class Steps:
    """The model's training and validation steps, by bucket.

    Seed and learning rate are variables, not constants: another schedule finds the same compiled step in XLA's cache.
    """

    def __init__(self, model: AcousticModel, optimizer: AdamW, training: TrainingConfig, step: tf.Variable) -> None:
        self.model, self.optimizer, self.training, self.step = model, optimizer, training, step
        self.seed = tf.Variable(training.seed, dtype=tf.int64, trainable=False)
        self.rate = tf.Variable(0.0, trainable=False)
        """Learning rate of the next step; the loop sets it."""
        self.guard = TraceGuard()
        self.training_steps: dict[int, Callable[..., tf.Tensor]] = {}
        self.validation_steps: dict[int, Callable[..., tf.Tensor]] = {}

    def trace(
        self, signatures: dict[int, list[tf.TensorSpec]], *, training: Iterable[int], validation: Iterable[int]
    ) -> None:
        """Trace the steps of the buckets that hold training clips and of those that hold out clips, and close the set.

        Relaxed signatures leave the set open: every new shape is traced when it comes.

        Done before anything that differs between a fresh and a resumed run: XLA's cache knows a step by the number
        that TensorFlow gave its trace.
        """
        self.training_steps = {bucket: self.train(bucket, signatures[bucket]) for bucket in training}
        self.validation_steps = {bucket: self.validate(bucket, signatures[bucket]) for bucket in validation}
        if all(is_closed(signature) for signature in signatures.values()):
            self.guard.lock()

    def train(self, bucket: int, signature: list[tf.TensorSpec]) -> Callable[..., tf.Tensor]:
        """The locked training step of a bucket: `Batch` -> float32[len(TRAIN_METRICS)]."""

        def train_step(*batch: tf.Tensor) -> tf.Tensor:
            self.guard.note(f"training step of bucket {bucket:02d}", batch)
            return self._update(batch)

        return locked(train_step, signature) if is_closed(signature) else relaxed(train_step)

    def validate(self, bucket: int, signature: list[tf.TensorSpec]) -> Callable[..., tf.Tensor]:
        """The locked validation step of a bucket: `Batch` -> float32[len(LOSSES), 2], sums and counts."""

        def validation_step(*batch: tf.Tensor) -> tf.Tensor:
            self.guard.note(f"validation step of bucket {bucket:02d}", batch)
            noise, time, _ = random_inputs(batch, self.seed, tf.constant(0, tf.int64))
            sums = self._loss_sums(batch, noise, time, None)
            # The model's counts are at least 1; a wholly blank batch has to count as nothing.
            present = tf.cast(tf.reduce_any(batch[3] > 0), tf.float32)
            counts = self.model.loss_counts(*batch[2:], micro_batches=None)
            return tf.stack([tf.stack([tf.reduce_sum(sums[name]), counts[name] * present]) for name in LOSSES])

        return locked(validation_step, signature) if is_closed(signature) else relaxed(validation_step)

    def _loss_sums(
        self, batch: Batch, noise: tf.Tensor, time: tf.Tensor, dropout: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        speaker = batch[4] if len(batch) > 4 else None
        sums: dict[str, tf.Tensor] = self.model.loss_sums(
            *batch[:4], noise=noise, time=time, dropout_seed=dropout, speaker=speaker
        )
        return sums

    def _gradients(
        self, batch: Batch, noise: tf.Tensor, time: tf.Tensor, dropout: tf.Tensor, counts: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """(losses float32[3], gradients) of some clips, divided by the counts of the whole batch."""
        with tf.GradientTape() as tape:
            sums = self._loss_sums(batch, noise, time, dropout)
            losses = tf.stack([tf.reduce_sum(sums[name]) / counts[name] for name in LOSSES])
            total = tf.reduce_sum(losses * loss_weights(self.training))
        gradients = tape.gradient(total, self.optimizer.weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return losses, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _accumulate(self, batch: Batch, counts: dict[str, tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """(losses, gradients) of the whole batch, in `gradient_accumulation_steps` micro-batches."""
        noise, time, dropout = random_inputs(batch, self.seed, self.step)
        parts = self.training.gradient_accumulation_steps
        if parts == 1:
            return self._gradients(batch, noise, time, dropout, counts)
        split = [tf.reshape(part, [parts, -1, *part.shape[1:]]) for part in (*batch, noise, time)]

        def add(i: tf.Tensor, losses: tf.Tensor, *gradients: tf.Tensor) -> tuple[tf.Tensor, ...]:
            *micro, micro_noise, micro_time = (part[i] for part in split)
            key = tf.random.experimental.stateless_fold_in(dropout, i)
            more, more_gradients = self._gradients(tuple(micro), micro_noise, micro_time, key, counts)
            summed = (a + b for a, b in zip(gradients, more_gradients, strict=True))
            return (i + 1, losses + more, *summed)

        zeros = [tf.zeros_like(weight) for weight in self.optimizer.weights]
        start = (tf.constant(0), tf.zeros([len(LOSSES)]), *zeros)
        _, losses, *gradients = tf.while_loop(lambda i, *_: i < parts, add, start, maximum_iterations=parts)
        return losses, gradients

    def _update(self, batch: Batch) -> tf.Tensor:
        """Loss, gradient, clipping, guarded AdamW; a blank batch or a non-finite number changes no weight."""
        counts = self.model.loss_counts(*batch[2:], micro_batches=self.training.gradient_accumulation_steps)
        losses, gradients = self._accumulate(batch, counts)
        norm = tf.linalg.global_norm(gradients)
        total = tf.reduce_sum(losses * loss_weights(self.training))
        frames = tf.reduce_sum(batch[3])
        finite = tf.math.is_finite(norm) & tf.math.is_finite(total)
        scale = self.training.clip_norm / tf.maximum(norm, self.training.clip_norm)
        self.optimizer.apply(gradients, self.rate, scale=scale, accept=finite & (frames > 0))
        self.step.assign_add(tf.cast(frames > 0, tf.int64))
        skipped = tf.cast(~finite, tf.float32)
        return tf.stack([total, *tf.unstack(losses), norm, self.rate, skipped, tf.cast(frames, tf.float32)])


def locked(body: Callable[..., tf.Tensor], signature: list[tf.TensorSpec]) -> Callable[..., tf.Tensor]:
    """`body` traced at once, and compiled by XLA at its first call, for exactly one signature."""
    function = tf.function(body, input_signature=signature, jit_compile=True, autograph=False)
    function.get_concrete_function()
    return cast(Callable[..., tf.Tensor], function)


def is_closed(signature: list[tf.TensorSpec]) -> bool:
    """True when every dimension is known before the first batch."""
    return all(part.shape.is_fully_defined() for part in signature)


def relaxed(body: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """`body` traced and compiled at every call with a new shape: what Lockstep exists to avoid, and compares with."""
    return cast(Callable[..., tf.Tensor], tf.function(body, jit_compile=True, autograph=False))


def loss_weights(training: TrainingConfig) -> tf.Tensor:
    """float32[3]: the weights of `LOSSES` in the total."""
    return tf.constant([1.0, 1.0, training.duration_loss_weight])
