"""The dynamic baseline: clips padded per batch, so that every new shape is traced and compiled.

It exists for comparison with the locked path, from which only its batches and signatures differ.
"""

from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.trainer.loop.train_step import TraceGuard

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

    def nearly_exhausted(self, guard: TraceGuard) -> bool:
        """Whether too few memory maps are left for another step."""
        if len(guard.traces) != self._traces:
            before, self._free, self._traces = self._free, free_maps(), len(guard.traces)
            if before is not None and self._free is not None:
                self._largest = max(self._largest, before - self._free)
        return self._free is not None and self._free < _SPARE_STEPS * self._largest

    def check(self, guard: TraceGuard) -> None:
        """Raise `LockstepError` before a validation step that could be one too many."""
        if self.nearly_exhausted(guard):
            raise LockstepError(
                "validation", found=f"the kernel has no memory maps for more than {len(guard.traces)} steps",
                fix="raise vm.max_map_count, or set training.validation_clips lower", exit_code=1,
            )  # fmt: skip
