"""The dynamic baseline: clips padded per batch. Python picks every batch, and every new shape is compiled.

It exists for comparison. Order, position, model, losses and update are those of the locked path; only batching and
signature differ.
"""

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.optimizer import learning_rate
from xtts.trainer.engine.train_step import Steps
from xtts.trainer.engine.training_loop import CallResult, TrainingLoop
from xtts.trainer.engine.validation_loop import ValidationLoop

WARNING = (
    "warning: the cache holds unpadded clips, so training stops to trace and compile every new shape. "
    "This is the slow baseline; build the cache with shapes.pad_to_fixed_length: true to train in lockstep"
)


_KERNEL_LIMIT = Path("/proc/sys/vm/max_map_count")
_SPARE_STEPS = 2
"""Compiled steps to keep memory maps free for."""


def free_maps() -> int | None:
    """Memory maps that this process may still create, or None where the kernel does not report it.

    A step compiled for a CPU keeps about a thousand of the usual 65,530. A process that runs out dies.
    """
    try:
        used = Path("/proc/self/maps").read_bytes().count(b"\n")
        return int(_KERNEL_LIMIT.read_text(encoding="ascii")) - used
    except OSError:
        return None


class MemoryMaps:
    """Tracks how many memory maps compiled steps use."""

    def __init__(self) -> None:
        self._traces, self._largest = 0, 0
        self._free: int | None = None

    def nearly_exhausted(self, traces: int) -> bool:
        """True when, after `traces` traces, too few are left for another step."""
        if traces != self._traces:
            before, self._free, self._traces = self._free, free_maps(), traces
            if before is not None and self._free is not None:
                self._largest = max(self._largest, before - self._free)
        return self._free is not None and self._free < _SPARE_STEPS * self._largest


class DynamicLoop(TrainingLoop):
    """`run(n)` returns to the host after one batch, to handle signals and report every trace."""

    _steps: Steps

    @property
    def closed_set(self) -> list[TrainingBucket]:
        """Empty: no shape is known before its batch."""
        return []

    @cached_property
    def _maps(self) -> MemoryMaps:
        return MemoryMaps()

    def run(self, count: int) -> CallResult:
        """Run one batch, whatever `count` is."""
        self.host_calls += 1
        clock = [time.perf_counter()]
        place, offset = self._next()
        self._steps.rate.assign(learning_rate(self._steps.training, self._steps.step))
        clock.append(time.perf_counter())
        batch = next(self._iterators[int(place)])
        clock.append(time.perf_counter())
        metrics = self._steps.train(self.buckets[int(place)].number, batch).numpy()
        clock.append(time.perf_counter())
        self.exhausted = self._maps.nearly_exhausted(len(self._steps.guard.traces))
        seconds = np.diff(clock)[None]
        return CallResult(
            metrics[None], seconds, place.numpy()[None], offset.numpy()[None], wall=time.perf_counter() - clock[0]
        )


class DynamicValidation(ValidationLoop):
    """`run()` calls the validation step from the host, batch by batch."""

    def __init__(self, buckets: Sequence[TrainingBucket], steps: Steps, stop: tf.Variable) -> None:
        super().__init__(buckets, steps, stop)
        self._guard, self._maps = steps.guard, MemoryMaps()
        self._parts = [(starts, batches, self._watched(step)) for starts, batches, step in self._parts]
        self._run = self._sums

    def _watched(self, step: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
        def run(*inputs: tf.Tensor) -> tf.Tensor:
            if self._maps.nearly_exhausted(len(self._guard.traces)):
                raise LockstepError(
                    "validation", found=f"the kernel has no memory maps for more than {len(self._guard.traces)} steps",
                    fix="raise vm.max_map_count, or set training.validation_clips lower",
                    exit_code=1,
                )  # fmt: skip
            return step(*inputs)

        return run


def loop_kinds(buckets: Sequence[TrainingBucket]) -> tuple[type[TrainingLoop], type[ValidationLoop]]:
    """The loops for a cache: locked if every signature is."""
    locked = all(bucket.signature.is_locked for bucket in buckets)
    return (TrainingLoop, ValidationLoop) if locked else (DynamicLoop, DynamicValidation)
