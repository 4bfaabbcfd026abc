"""Numbers that are not finite: which clips they came from, and when a run ends for them."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from xtts.shared.cache.cache_spec import CacheSpec, Split, shard_places
from xtts.shared.cache.clip_index import Kept, iter_index
from xtts.shared.errors import LockstepError
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.reporting.reporter import StepRows


def clip_namer(cache: Path, spec: CacheSpec, split: Split) -> Callable[[int, list[tuple[int, int]]], list[str]]:
    """Function from (bucket, [(shard, record)]) to clip ids of a split; it reads the index at its first use."""
    names: dict[tuple[str, int], str] = {}

    def name(bucket: int, places: list[tuple[int, int]]) -> list[str]:
        if not names:
            files = shard_places(spec)
            for row in iter_index(cache / spec.index_file):
                if isinstance(row, Kept) and row.place.split == split:
                    names[files[row.place], row.written.position] = row.clip.id
        shards = spec.buckets[bucket].shards(split)
        return [names[shards[shard].file, position] for shard, position in places]

    return name


class SkippedUpdates:
    """Counts the updates that were skipped in a row."""

    def __init__(self, cache: Path, spec: CacheSpec, buckets: Sequence[TrainingBucket], most: int) -> None:
        """buckets: those of the loop, most: updates skipped in a row that end the run."""
        self._names = clip_namer(cache, spec, "train")
        self._buckets, self._most, self._in_a_row = buckets, most, 0

    def lines(self, rows: StepRows) -> Iterator[str]:
        """A line for each skipped update, with its clips; `LockstepError` after too many in a row."""
        for i, skipped in enumerate(rows.column("skipped")):
            self._in_a_row = self._in_a_row + 1 if skipped else 0
            if not skipped:
                continue
            step, bucket = rows.first_step + i, self._buckets[int(rows.result.buckets[i])]
            places = bucket.order.locate(int(rows.result.offsets[i]), bucket.batch_size)
            clips = ", ".join(self._names(bucket.number, places))
            yield f"step {step}: loss or gradient not finite, update skipped; clips: {clips}"
            if self._in_a_row >= self._most:
                raise LockstepError(
                    f"step {step}", found=f"{self._in_a_row} non-finite updates in a row, all skipped",
                    fix="check the clips named above, or lower training.learning_rate, then --resume", exit_code=1,
                )  # fmt: skip
