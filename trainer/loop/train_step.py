"""The locked steps: one `tf.function(input_signature=..., jit_compile=True)` per bucket, from one body.

A training step is two compiled functions: the gradients of a bucket's batch, and one update that all buckets share,
so that the optimizer is compiled once. Between them the loop adds up the gradients of all replicas. With a relaxed
signature (unpadded clips, the baseline) the gradients are retraced for every shape. Nothing else in the trainer
computes a loss or updates a weight.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import cast

import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch import AnyBatch, is_locked, with_tensors
from xtts.trainer.loop.compiler import on_blank_inputs
from xtts.trainer.loop.objective import Objective
from xtts.trainer.loop.optimizer import Optimizer
from xtts.trainer.loop.step_names import UPDATE, training_step, validation_step


class TraceGuard:
    """Counts traces; once the set of signatures is closed, another trace is an error that shows its specs."""

    def __init__(self) -> None:
        self.traces: list[str] = []
        self.locked = False

    def count(self, kind: str) -> int:
        """Traces of `training` or `validation` steps."""
        return sum(trace.startswith(kind) for trace in self.traces)

    def note(self, name: str, batch: AnyBatch) -> None:
        """Record a trace. A step's body calls this, and Python runs the body only while tracing."""
        specs = ", ".join(f"{tensor.dtype.name}{tensor.shape.as_list()}" for tensor in batch)
        if self.locked:
            raise LockstepError(
                name,
                found=f"a new trace with ({specs})",
                expected="one of the closed set: " + "; ".join(self.traces),
                fix="every batch must come from the cache that the signatures were derived from",
            )
        self.traces.append(f"{name} ({specs})")


class StepFunctions:
    """The training and validation steps of one replica of the model, by bucket.

    Letters: K losses of a training step, V losses of validation, N values that a step returns; see `metrics`.

    Seed and typical counts are variables and the learning rate is an input, so that another schedule or corpus of the
    same shapes reuses the compiled steps in XLA's cache.
    """

    def __init__(
        self, objective: Objective, optimizer: Optimizer, training: TrainingConfig, step: tf.Variable, *,
        typical: tuple[float, float], replica: int = 0, replicas: int = 1,
    ) -> None:
        """typical: from `typical_update`; replica: the gradients are of its equal share of every batch."""
        self.objective, self.optimizer, self.training, self.step = objective, optimizer, training, step
        self.metrics = objective.metrics
        self._replica, self._replicas = replica, replicas
        self._micro_batches = training.gradient_accumulation_steps // replicas
        self.typical = tf.Variable(objective.counts_of(*typical), dtype=tf.float32, trainable=False)
        """Counts of `metrics.losses` in an average update, float32[K], by which gradients are divided: a frame weighs
        the same in a batch of few as in a batch of many."""
        self.seed = tf.Variable(training.seed, dtype=tf.int64, trainable=False)
        self.guard = TraceGuard()
        self.gradient_steps: dict[int, Callable[..., list[tf.Tensor]]] = {}
        """A batch -> [losses float32[K], gradient float32[P]]. With several replicas the counts of the whole batch
        follow, float32[K], by which the losses are divided."""
        self.validation_steps: dict[int, Callable[..., tf.Tensor]] = {}
        """A batch, int32[] position of its first clip in the split -> float32[V, 2], sums and counts."""
        self._apply: Callable[..., tf.Tensor] = lambda *inputs: self.update(*inputs)
        """The update that `apply` calls."""
        self.compile_calls: dict[str, Callable[[], None]] = {}
        """Calls that compile a locked step and change no state, by step name."""

    def trace(
        self, training: Mapping[int, AnyBatch], validation: Mapping[int, AnyBatch] = MappingProxyType({}), *,
        traced: Callable[[str, Callable[[], None]], None] = lambda name, call: None,
    ) -> None:
        """Trace the training and validation steps, and close the set of signatures.

        training, validation: signatures by bucket number; those of training hold this replica's rows. With open
        signatures the set stays open, and every new shape is traced when it occurs. `traced` is called with the name
        and `compile_calls` entry of each locked step once it is traced, first of the update, which every run needs.

        Call this before anything that differs between a fresh and a resumed run: XLA's cache identifies a step by the
        number TensorFlow gave its trace.
        """
        if training:
            self._traced(UPDATE, self.update, traced)
        for bucket, signature in training.items():
            self.gradient_steps[bucket] = self._gradient_step(bucket, signature)
            self._traced(training_step(bucket), self.gradient_steps[bucket], traced)
        for bucket, signature in validation.items():
            self.validation_steps[bucket] = self._validation_step(bucket, signature)
            self._traced(validation_step(bucket), self.validation_steps[bucket], traced)
        if self._replicas > 1:  # inside `strategy.run` TensorFlow would trace a `tf.function` again
            self._apply = cast(Callable[..., tf.Tensor], self.update.get_concrete_function())
            self.gradient_steps = {n: step.get_concrete_function() for n, step in self.gradient_steps.items()}  # type: ignore[attr-defined]
            self.validation_steps = {n: step.get_concrete_function() for n, step in self.validation_steps.items()}  # type: ignore[attr-defined]
        if all(is_locked(signature) for signature in (*training.values(), *validation.values())):
            self.guard.locked = True

    def _traced(self, name: str, step: Callable[..., object], note: Callable[[str, Callable[[], None]], None]) -> None:
        if isinstance(step, tf.types.experimental.PolymorphicFunction) and step.input_signature is not None:
            self.compile_calls[name] = on_blank_inputs(step)
            note(name, self.compile_calls[name])

    def compile(self) -> None:
        """Compile every locked step now."""
        for call in self.compile_calls.values():
            call()

    def counts(self, batch: AnyBatch) -> tf.Tensor:
        """The share of these rows in the whole batch's counts of `metrics.losses`: float32[K]."""
        return self.objective.counts(batch)

    def gradients(self, bucket: int, batch: AnyBatch, *counts: tf.Tensor) -> list[tf.Tensor]:
        """[losses, gradient] of this replica's rows; counts: see `gradient_steps`."""
        return self.gradient_steps[bucket](*batch, *counts)

    def apply(self, frames: tf.Tensor, rate: tf.Tensor, total: Sequence[tf.Tensor]) -> tf.Tensor:
        """Update by the sums of `gradients` at a learning rate; frames: int32[], useful frames.

        -> float32[N]
        """
        losses, gradient = total
        return self._apply(losses, frames, rate, gradient)

    def train(self, bucket: int, batch: AnyBatch, rate: tf.Tensor | float) -> tf.Tensor:
        """One training step of a single replica on a batch of a bucket: float32[N]."""
        frames = tf.reduce_sum(batch.mel_length)
        return self.apply(frames, tf.convert_to_tensor(rate), self.gradients(bucket, batch))

    @cached_property
    def update(self) -> tf.types.experimental.PolymorphicFunction:
        """Losses float32[K], useful frames int32[], learning rate float32[], gradient float32[P].

        -> float32[N]
        """
        signature = [tf.TensorSpec([len(self.metrics.losses)]), tf.TensorSpec([], tf.int32), tf.TensorSpec([])]
        signature.append(tf.TensorSpec([self.optimizer.flat.size]))
        return tf.function(self._update, input_signature=signature, jit_compile=True, autograph=False)

    def _gradient_step(self, bucket: int, signature: AnyBatch) -> Callable[..., list[tf.Tensor]]:
        def gradient_step(*inputs: tf.Tensor) -> list[tf.Tensor]:
            batch, counts = with_tensors(signature, inputs[: len(signature)]), inputs[len(signature) :]
            self.guard.note(training_step(bucket), batch)
            return list(self.accumulate(batch, *counts))

        counts = [tf.TensorSpec([len(self.metrics.losses)], tf.float32, "counts")] if self._replicas > 1 else []
        return locked(gradient_step, (*signature, *counts))

    def _validation_step(self, bucket: int, signature: AnyBatch) -> Callable[..., tf.Tensor]:
        def validation_losses(*inputs: tf.Tensor) -> tf.Tensor:
            *tensors, first = inputs
            batch = with_tensors(signature, tensors)
            self.guard.note(validation_step(bucket), batch)
            clips = first + tf.range(batch.mel.shape[0])
            sums = self.objective.held_out_sums(batch, clips, self.seed, bucket)
            positions = [self.metrics.losses.index(name) for name in self.metrics.held_out]
            counts = tf.gather(self.objective.counts(batch), positions)
            return tf.stack([[tf.reduce_sum(sums[name]) for name in self.metrics.held_out], counts], axis=1)

        return locked(validation_losses, (*signature, tf.TensorSpec([], tf.int32, "first")))

    def _gradients(
        self, batch: AnyBatch, random: tuple[tf.Tensor, ...], counts: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(losses float32[K], gradient float32[P]) of a micro-batch.

        The losses are sums divided by the counts of the whole batch, the gradient is that of sums divided by `typical`.
        """
        with tf.GradientTape() as tape:
            sums = self.objective.loss_sums(batch, random)
            summed = tf.stack([tf.reduce_sum(sums[name]) for name in self.metrics.losses])
            total = tf.reduce_sum(summed / self.typical * list(self.metrics.weights.values()))
        weights = self.optimizer.weights
        gradients = [
            tf.zeros(weight.shape) if gradient is None else tf.convert_to_tensor(gradient)  # None: in no loss
            for weight, gradient in zip(weights, tape.gradient(total, weights), strict=True)
        ]
        return summed / counts, self.optimizer.flat.flatten(gradients)

    def accumulate(self, batch: AnyBatch, counts: tf.Tensor | None = None) -> tuple[tf.Tensor, tf.Tensor]:
        """The share of these rows in the (losses, gradient) of the whole batch, in equal micro-batches.

        counts: of the whole batch; None if these rows are all of it.
        """
        divisors = tf.maximum(self.counts(batch) if counts is None else counts, 1.0)
        random = self.objective.random_inputs(
            batch, self.seed, self.step, replica=self._replica, replicas=self._replicas
        )
        if self._replica:
            random = (*random[:-1], random[-1] + tf.constant([self._replica * self._micro_batches, 0]))
        if self._micro_batches == 1:
            return self._gradients(batch, random, divisors)
        first, second = tf.unstack(random[-1])
        split = [tf.reshape(x, [self._micro_batches, -1, *x.shape[1:]]) for x in (*batch, *random[:-1])]

        def add(i: tf.Tensor, losses: tf.Tensor, gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            rows = [tensor[i] for tensor in split]
            inputs = (*rows[len(batch) :], tf.stack([first + i, second]))
            more, more_gradient = self._gradients(with_tensors(batch, rows[: len(batch)]), inputs, divisors)
            return i + 1, losses + more, gradient + more_gradient

        start = (tf.constant(0), tf.zeros([len(self.metrics.losses)]), tf.zeros([self.optimizer.flat.size]))
        _, losses, gradient = tf.while_loop(
            lambda i, *_: i < self._micro_batches, add, start, maximum_iterations=self._micro_batches
        )
        return losses, gradient

    def _update(self, losses: tf.Tensor, frames: tf.Tensor, rate: tf.Tensor, gradient: tf.Tensor) -> tf.Tensor:
        """Clip, then update; a batch of padding rows or a non-finite loss or norm changes no weight."""
        clipped, norms = self.optimizer.clip(gradient, self.training.clip_norm)
        total = tf.reduce_sum(losses * list(self.metrics.weights.values()))
        finite = tf.reduce_all(tf.math.is_finite(norms)) & tf.math.is_finite(total)
        self.optimizer.apply(clipped, rate, accept=finite & (frames > 0))
        self.step.assign_add(tf.cast(frames > 0, tf.int64))
        skipped = tf.cast(~finite, tf.float32)
        metrics = [total, *tf.unstack(losses), *tf.unstack(norms), rate, skipped, tf.cast(frames, tf.float32)]
        return tf.stack(metrics)


def locked(body: Callable[..., tf.Tensor], signature: Sequence[tf.TensorSpec]) -> Callable[..., tf.Tensor]:
    """`body` for exactly one signature: traced now, compiled by XLA at its first call.

    With an open signature it is traced and compiled for every new shape: what Lockstep avoids, kept as the baseline.
    """
    closed = is_locked(signature)
    function = tf.function(body, input_signature=signature if closed else None, jit_compile=True, autograph=False)
    if closed:
        function.get_concrete_function()
    return cast(Callable[..., tf.Tensor], function)
