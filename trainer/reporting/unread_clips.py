"""Clips whose wav could not be read, in runs straight from audio: which they are, and when a run ends for them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.errors import LockstepError
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.engine.validation_loop import HeldOut
from xtts.trainer.reporting.not_finite import Batch, clip_names
from xtts.trainer.reporting.reporter import StepRows

_LISTED = 50
"""Most clips that the last error names; every clip had a line of its own before."""


class UnreadClips:
    """Names each clip once, and counts them."""

    def __init__(self, cache: Path, spec: CacheSpec, buckets: Sequence[TrainingBucket], most_share: float) -> None:
        """buckets: those of the loop, most_share: of the training clips; with more unread ones the run ends."""
        self._cache, self._spec, self._buckets = cache, spec, buckets
        self._found, self._said = list[str](), set[str]()
        self._clips, self._most_share = sum(bucket.stored.clips("train") for bucket in buckets), most_share

    def lines(self, rows: StepRows) -> Iterator[str]:
        """A line for each training clip that is found unreadable; `LockstepError` when they are too many."""
        flags = rows.result.unread
        if flags is None:
            return
        steps, batches = np.flatnonzero(flags.any(axis=1)), list[Batch]()
        for i in steps:
            bucket = self._buckets[int(rows.result.buckets[i])]
            places = bucket.order.locate(int(rows.result.offsets[i]), bucket.batch_size)
            batches.append((bucket.number, [place for place, flag in zip(places, flags[i], strict=False) if flag]))
        for i, names in zip(steps, clip_names(self._cache, self._spec, "train", batches), strict=True):
            yield from self._new(f"step {rows.first_step + i}", names)
        if len(self._found) > self._most_share * self._clips:
            listed = ", ".join(self._found[:_LISTED]) + (", ..." if len(self._found) > _LISTED else "")
            raise LockstepError(
                f"step {rows.first_step + len(flags) - 1}",
                found=f"{len(self._found)} of {self._clips} clips could not be read: {listed}",
                expected=f"at most {self._most_share:.1%} (data.max_unreadable_fraction)",
                fix="put the recordings back as they were indexed, then --resume", exit_code=1,
            )  # fmt: skip

    def held_out(self, where: str, unread: Iterable[HeldOut]) -> Iterator[str]:
        """A line for each validation clip that is found unreadable."""
        for names in clip_names(self._cache, self._spec, "validation", list(unread)):
            yield from self._new(where, names, counted=False)

    def _new(self, where: str, names: Iterable[str], *, counted: bool = True) -> Iterator[str]:
        for name in names:
            if name in self._said:
                continue
            self._said.add(name)
            self._found += [name] * counted
            yield f"{where}: the audio of {name} is missing, broken or not what was indexed: the clip counts as blank"
