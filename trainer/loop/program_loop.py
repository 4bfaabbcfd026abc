"""The loop of a run whose steps are programs: an order of batches, a reader and a runtime, without TensorFlow.

In the process that traced the steps TensorFlow draws and reads (`trainer/loop/programs.py`); elsewhere the order is a
table, and NumPy reads (`trainer/run/train_steps.py`).
"""

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from xtts.shared.cache.cache_spec import Split
from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.stored_batches import Input
from xtts.trainer.loop.chunk import CallResult, StoredBatch
from xtts.trainer.loop.failures import RunEnded
from xtts.trainer.loop.jax_runtime import JaxRuntime, StepQueue
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.schedule import learning_rate
from xtts.trainer.loop.step_names import UPDATE, training_step, validation_step

_AHEAD = 4
"""Batches that are drawn and read while earlier steps run: a slow one among them delays no step."""


class Place(NamedTuple):
    """The place of a run in the order of its batches."""

    batches: int
    """Batches done."""
    epoch: int
    consumed: np.ndarray
    """int64[K]: clips of each bucket consumed since the start of the run."""


class Order(Protocol):
    """The order of a run's batches."""

    @property
    def buckets(self) -> Sequence[int]:
        """Numbers of the K buckets that hold training clips."""

    def draw(self, place: Place) -> tuple[int, Place]:
        """(index in `buckets` of the next batch's, the place after it)."""

    def batch(self, index: int, offset: int) -> StoredBatch:
        """The batch of a bucket after so many of its clips."""


class Reader(Protocol):
    """Reads batches: those of a bucket and a split in their order."""

    def read(
        self, bucket: int, split: Split, clips: Iterable[tuple[int, int]], fields: Sequence[Input]
    ) -> list[np.ndarray]:
        """See `StoredBatches.read`."""


class _Ahead(NamedTuple):
    """A batch that has been drawn and read."""

    position: int
    """That of its bucket in `Order.buckets`."""
    offset: int
    """Clips of that bucket consumed before it."""
    place: Place
    """The place after it."""
    batch: list[np.ndarray]
    frames: np.ndarray
    """int32[]: its useful frames."""


class ProgramLoop:
    """`run(n)` queues n steps, one call each; a thread draws and reads ahead, so that the device waits for neither."""

    def __init__(
        self, runtime: JaxRuntime, order: Order, reader: Reader, place: Place, training: TrainingConfig,
        metrics: Metrics,
    ) -> None:
        self.runtime, self.place, self.training = runtime, place, training
        self.stopping = False
        """Whether a stop was requested, from any thread."""
        self.batch = order.batch
        self._order, self._reader, self._metrics = order, reader, metrics
        self._thread, self._ahead = ThreadPoolExecutor(1, "read ahead"), deque[Future[_Ahead]]()
        self._front = place
        """The place after the last batch read."""

    @property
    def epoch(self) -> int:
        """Epoch of the last step, from 0."""
        return self.place.epoch

    @property
    def traces(self) -> int:
        """Training steps, each traced once."""
        return len(self._order.buckets)

    def stop(self) -> None:
        """End the current call after a step, from any thread; between two calls, the next one."""
        self.stopping = True

    def follow(self, training: TrainingConfig) -> None:
        """Switch to the learning rates of another schedule."""
        self.training = training

    def prepare(self) -> None:
        """Draw a batch, which may trace, and leave it."""
        self._order.draw(self.place)

    def run(self, count: int) -> CallResult:
        """Queue `count` steps and wait for the last; a stop ends it early."""
        began, queue = time.perf_counter(), StepQueue()
        turns = list[tuple[int, int]]()
        while len(turns) < count and not self.stopping:
            turns.append(self._launch(queue))
        queue.wait()
        indices, offsets = ([turn[i] for turn in turns] for i in range(2))
        return CallResult(
            np.array(queue.metrics, np.float32).reshape(-1, len(self._metrics.step)),
            np.array(queue.seconds).reshape(-1, 3), np.array(indices, np.int32), np.array(offsets, np.int64),
            time.perf_counter() - began, self.stopping,
        )

    def _launch(self, queue: StepQueue) -> tuple[int, int]:
        """Take the next batch and queue its step: (index of its bucket, clips consumed before)."""
        began = time.perf_counter()
        left = self.training.steps - self.place.batches
        while len(self._ahead) < max(1, min(_AHEAD, left)):
            self._ahead.append(self._thread.submit(self._read_next))
        index, offset, place, batch, frames = self._ahead.popleft().result()
        arrived, bucket = time.perf_counter(), self._order.buckets[index]
        losses, gradient = self.runtime.call(training_step(bucket), *batch)
        rate = np.float32(learning_rate(self.training, self.place.batches))
        (metrics,) = self.runtime.call(UPDATE, losses, frames, rate, gradient)
        queue.add(metrics, began, arrived)
        self.place = place
        return index, offset

    def _read_next(self) -> _Ahead:
        index, place = self._order.draw(self._front)
        bucket, offset = self._order.buckets[index], int(self._front.consumed[index])
        clips = self._clips(index, offset)
        batch, lengths = read(self._reader, self.runtime, training_step(bucket), bucket, "train", clips)
        self._front = place
        return _Ahead(index, offset, place, batch, lengths.sum(dtype=np.int32))

    def _clips(self, index: int, offset: int) -> Iterator[tuple[int, int]]:
        """The clips of a batch, looked up when a reader asks for the first: that of TensorFlow knows them."""
        yield from self.batch(index, offset)[1]

    def last_whole_step(self) -> int | None:
        """The last step whose update is complete; None if the device does not tell."""
        try:
            self.runtime.state()
        except RuntimeError:  # of JAX: the device is lost, or the state was in the step that failed
            return None
        return self.place.batches


class ProgramValidation:
    """`run()` validates the whole split, a batch a call."""

    def __init__(self, loop: ProgramLoop, batches: list[StoredBatch], reader: Reader, metrics: Metrics) -> None:
        self.batches = batches
        self._loop, self._reader, self._losses = loop, reader, metrics.held_out

    def run(self) -> tuple[dict[str, float], list[StoredBatch]] | None:
        """(mean losses by name, batches excluded because their losses are not finite); None if a stop ended it."""
        runtime, total, firsts = self._loop.runtime, np.zeros([len(self._losses), 2]), dict[int, int]()
        bad = list[StoredBatch]()
        for bucket, clips in self.batches:
            if self._loop.stopping:
                return None
            batch, _ = read(self._reader, runtime, validation_step(bucket), bucket, "validation", clips)
            (sums,) = runtime.call(validation_step(bucket), *batch, np.int32(firsts.get(bucket, 0)))
            firsts[bucket] = firsts.get(bucket, 0) + len(clips)
            if np.isfinite(sums).all():
                total += np.asarray(sums, np.float64)
            else:
                bad.append((bucket, clips))
        means = (float(values / count) if count else math.nan for values, count in total)
        return dict(zip(self._losses, means, strict=True)), bad


def read(
    reader: Reader, runtime: JaxRuntime, step: str, bucket: int, split: Split, clips: Iterable[tuple[int, int]]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Read a batch for a step: (its arrays, its `mel_length`); `RunEnded` for a shard that cannot be read."""
    fields = [field for field in runtime.programs[step].inputs if field.shape]
    try:
        batch = reader.read(bucket, split, clips, fields)
    except LockstepError as error:
        raise RunEnded(error.location, found=error.found, fix=error.fix, exit_code=1) from None
    return batch, batch[[field.name for field in fields].index("mel_length")]
