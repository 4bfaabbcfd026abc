"""Numbers that are not finite: which clips they came from, and when a run ends for them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from xtts.shared.cache.cache_spec import CacheSpec, Split, shard_place
from xtts.shared.cache.clip_index import KEPT, ShardPlace, readable_index
from xtts.shared.errors import LockstepError
from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.reporting.reporter import StepRows

Batch = tuple[int, list[tuple[int, int]]]
"""A bucket, and the (shard, record) of each clip."""


def clip_names(cache: Path, spec: CacheSpec, split: Split, batches: Sequence[Batch]) -> list[list[str]]:
    """The ids of the clips in batches of a split, `FILE:RECORD` of those that the index does not have."""
    files = [
        [(spec.buckets[bucket].shards(split)[shard].file, record) for shard, record in places]
        for bucket, places in batches
    ]
    wanted = {(shard_place(file), record) for batch in files for file, record in batch}
    ids = _clip_ids(cache / spec.index_file, wanted) if wanted else {}
    return [[ids.get((shard_place(file), record), f"{file}:{record}") for file, record in batch] for batch in files]


def _clip_ids(index: Path, wanted: set[tuple[ShardPlace, int]]) -> dict[tuple[ShardPlace, int], str]:
    """Ids by shard and record; of a large index it reads a few columns, a row group at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[tuple[ShardPlace, int], str] = {}
    columns = ("split", "bucket", "shard", "position")
    values = zip(*((place.split, place.bucket, place.shard, record) for place, record in wanted), strict=True)
    with readable_index(index) as file:
        pairs = zip(columns, values, strict=True)
        sets = {name: pa.array(set(column), file.schema_arrow.field(name).type) for name, column in pairs}
        for rows in file.iter_batches(columns=[*columns, "corpus", "id", "status"]):
            mask = pc.equal(rows["status"], KEPT)
            for name, some in sets.items():
                mask = pc.and_(mask, pc.is_in(rows[name], some))
            for row in rows.filter(mask).to_pylist():
                place = ShardPlace(row["split"], row["bucket"], row["shard"], row["corpus"])
                found[place, row["position"]] = row["id"]
    return found


class SkippedUpdates:
    """Counts the updates that were skipped in a row."""

    def __init__(self, cache: Path, spec: CacheSpec, buckets: Sequence[TrainingBucket], most: int) -> None:
        """buckets: those of the loop, most: updates skipped in a row that end the run."""
        self._cache, self._spec, self._buckets, self._most, self._in_a_row = cache, spec, buckets, most, 0

    def lines(self, rows: StepRows) -> Iterator[str]:
        """A line for each skipped update, with its clips; `LockstepError` after too many in a row."""
        skipped = [i for i, value in enumerate(rows.column("skipped")) if value]
        names = dict(zip(skipped, self._names(rows, skipped), strict=True))
        for i in range(len(rows.result.metrics)):
            self._in_a_row = self._in_a_row + 1 if i in names else 0
            if i not in names:
                continue
            step = rows.first_step + i
            yield f"step {step}: loss or gradient not finite, update skipped; clips: {', '.join(names[i])}"
            if self._in_a_row >= self._most:
                raise LockstepError(
                    f"step {step}", found=f"{self._in_a_row} non-finite updates in a row, all skipped",
                    fix="check the clips named above, or lower training.learning_rate, then --resume", exit_code=1,
                )  # fmt: skip

    def _names(self, rows: StepRows, steps: Sequence[int]) -> list[list[str]]:
        """The clips of some steps of a call; all of them in one pass over the index."""
        buckets = [self._buckets[int(rows.result.buckets[i])] for i in steps]
        located = [
            (bucket.number, bucket.order.locate(int(rows.result.offsets[i]), bucket.batch_size))
            for i, bucket in zip(steps, buckets, strict=True)
        ]
        return clip_names(self._cache, self._spec, "train", located)
