"""The loops of a run whose steps JAX runs: the same order, reader and results as those of TensorFlow's graph."""

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.loop.chunk import CallResult
from xtts.trainer.loop.jax_runtime import JaxRuntime, Program, StepQueue
from xtts.trainer.loop.optimizer import learning_rate
from xtts.trainer.loop.step_names import UPDATE, training_step, validation_step
from xtts.trainer.loop.train_step import StepFunctions
from xtts.trainer.loop.training_loop import Position, TrainingLoop
from xtts.trainer.loop.validation_loop import ValidationLoop


class TracedRuntime(JaxRuntime):
    """Programs of steps that TensorFlow traced in this process, whose variables hold the state between calls."""

    def __init__(self, programs: Mapping[str, Program], variables: Mapping[str, tf.Variable]) -> None:
        """variables: all that the programs read, by name; raises as `JaxRuntime`."""
        super().__init__(programs, {name: variable.numpy() for name, variable in variables.items()})
        self._variables = variables

    def pull(self) -> None:
        """Copy the state to the variables, after all queued calls."""
        for name, array in self.state().items():
            self._variables[name].assign(array)


class JaxTrainingLoop(TrainingLoop):
    """`run(n)` queues n steps from Python, one call each; the device does not wait for the host or the reader."""

    def __init__(
        self, buckets: Sequence[TrainingBucket], step_functions: StepFunctions, position: Position,
        runtime: TracedRuntime,
    ) -> None:  # fmt: skip
        self._runtime = runtime
        super().__init__(buckets, [step_functions], position)

    def _build(self) -> None:
        training = self._step_functions[0].training

        def draw(epoch: tf.Tensor, consumed: tf.Tensor, updates: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return (*self._draw(epoch, consumed), learning_rate(training, updates))

        kinds = [tf.TensorSpec([], tf.int64), tf.TensorSpec([len(self.buckets)], tf.int64), tf.TensorSpec([], tf.int64)]
        self._turn_of: Callable[..., tuple[tf.Tensor, ...]] = tf.function(draw, input_signature=kinds, autograph=False)

    def prepare(self) -> None:
        """Trace the draw of a batch."""
        _, _, epoch, *consumed = self._progress.numpy().tolist()
        self._next(epoch, consumed, 0)

    def run(self, count: int) -> CallResult:
        """Queue `count` steps and wait for the last; setting `stop` ends it early."""
        self.host_calls += 1
        began, queue, drawn, stopped = time.perf_counter(), StepQueue(), list[tuple[int, int, np.ndarray]](), False
        batches, updates, epoch, *consumed = self._progress.numpy().tolist()
        for _ in range(count):
            if stopped := bool(self.stop.numpy()):
                break
            index, offset, unread, frames, epoch, consumed = self._launch(queue, epoch, consumed, updates)
            updates += int(frames > 0)
            drawn.append((index, offset, unread))
        queue.wait()
        self._progress.assign([batches + len(drawn), updates, epoch, *consumed])
        self._note_position()
        indices, offsets, rows = ([row[i] for row in drawn] for i in range(3))
        values = len(self._step_functions[0].metrics.step)
        return CallResult(
            np.array(queue.metrics, np.float32).reshape(-1, values), np.array(queue.seconds).reshape(-1, 3),
            np.array(indices, np.int32), np.array(offsets, np.int64), time.perf_counter() - began, stopped,
            np.array(rows).reshape(-1, self._max_batch) if self._names_audio else None,
        )  # fmt: skip

    def _next(self, epoch: int, consumed: list[int], updates: int) -> tuple[np.ndarray, ...]:
        """Draw a batch: (as in `_draw`, learning rate)."""
        turn = self._turn_of(*(tf.constant(value, tf.int64) for value in (epoch, consumed, updates)))
        return tuple(tensor.numpy() for tensor in turn)

    def _launch(
        self, queue: StepQueue, epoch: int, consumed: list[int], updates: int
    ) -> tuple[int, int, np.ndarray, int, int, list[int]]:
        """Draw and read a batch, and queue its step.

        Returns (bucket, clips consumed before, rows without a clip, useful frames, epoch and clips consumed after it).
        """
        index, offset, after, consumed_after, rate = self._next(epoch, consumed, updates)
        drawn, bucket = time.perf_counter(), self.buckets[int(index)]
        batch = next(self._iterators[int(index)])
        arrays, lengths, read = [tensor.numpy() for tensor in batch], batch.mel_length.numpy(), time.perf_counter()
        frames = lengths.sum(dtype=np.int32)
        losses, gradient = self._runtime.call(training_step(bucket.number), *arrays)
        (metrics,) = self._runtime.call(UPDATE, losses, frames, rate, gradient)
        queue.add(metrics, drawn, read)
        unread = np.pad(lengths == 0, (0, self._max_batch - len(lengths)))
        return int(index), int(offset), unread, int(frames), int(after), consumed_after.tolist()

    def last_whole_step(self) -> int | None:
        """The last step whose update is complete; None if the device does not tell."""
        try:
            self._runtime.pull()
        except RuntimeError:  # of JAX: the device is lost, or the state was in the step that failed
            return None
        return super().last_whole_step()


class _JaxValidation:
    """Subset of step functions that `ValidationLoop` needs."""

    def __init__(self, step_functions: StepFunctions, runtime: JaxRuntime) -> None:
        def step(bucket: int) -> Callable[..., tf.Tensor]:
            def run(*inputs: tf.Tensor) -> tf.Tensor:
                (sums,) = runtime.call(validation_step(bucket), *(tensor.numpy() for tensor in inputs))
                return tf.constant(np.asarray(sums))

            return run

        self.metrics = step_functions.metrics
        self.validation_steps = {bucket: step(bucket) for bucket in step_functions.validation_steps}


class JaxValidationLoop(ValidationLoop):
    """`run()` validates batch by batch, from Python."""

    def __init__(
        self, buckets: Sequence[TrainingBucket], step_functions: StepFunctions, stop: tf.Variable, runtime: JaxRuntime
    ) -> None:
        super().__init__(buckets, [_JaxValidation(step_functions, runtime)], stop)  # type: ignore[list-item]
        self._run = self._sums
