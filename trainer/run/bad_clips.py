"""A hook of a run that names clips whose loss or gradient is not finite, and ends the run after too many of them."""

from collections.abc import Sequence
from pathlib import Path

from xtts.shared.cache.cache_spec import CacheSpec, Split, shard_id_of
from xtts.shared.cache.clip_index import KEPT, ShardId, readable_index
from xtts.trainer.loop.chunk import Chunk, StoredBatch
from xtts.trainer.loop.failures import RunEnded
from xtts.trainer.run.hosted_run import HostedRun


def clip_names(cache: Path, spec: CacheSpec, split: Split, batches: Sequence[StoredBatch]) -> list[list[str]]:
    """The ids of the clips in batches of a split, `FILE:RECORD` for those not in the index, which is read once."""
    files = [
        [(spec.buckets[bucket].shards(split)[shard].file, record) for shard, record in clips]
        for bucket, clips in batches
    ]
    wanted = {(shard_id_of(file), record) for batch in files for file, record in batch}
    ids = _clip_ids(cache / spec.index_file, wanted) if wanted else {}
    return [[ids.get((shard_id_of(file), record), f"{file}:{record}") for file, record in batch] for batch in files]


def _clip_ids(index: Path, wanted: set[tuple[ShardId, int]]) -> dict[tuple[ShardId, int], str]:
    """Clip ids by shard and record; reads a few columns of the index, a row group at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids: dict[tuple[ShardId, int], str] = {}
    positions = pa.array({record for _, record in wanted}, pa.int64())
    with readable_index(index) as file:
        for rows in file.iter_batches(columns=[*ShardId._fields, "position", "id", "status"]):
            mask = pc.and_(pc.equal(rows["status"], KEPT), pc.is_in(rows["position"], positions))
            for row in rows.filter(mask).to_pylist():
                key = ShardId(*(row[field] for field in ShardId._fields)), row["position"]
                if key in wanted:
                    ids[key] = row["id"]
    return ids


class SkippedUpdates:
    """Names the clips of skipped updates, and counts the updates skipped in a row."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def __call__(self, run: HostedRun, chunk: Chunk) -> None:
        """Report each skipped update, with its clips; `RunEnded` after too many in a row."""
        skipped = [i for i, value in enumerate(chunk.column("skipped")) if value]
        batches = [run.batch_of(chunk, i) for i in skipped]
        names = dict(zip(skipped, clip_names(run.plan.cache, run.plan.spec, "train", batches), strict=True))
        for i in range(len(chunk.result.metrics)):
            self._in_a_row = self._in_a_row + 1 if i in names else 0
            if i not in names:
                continue
            step = chunk.first_step + i
            run.reporter.say(f"step {step}: loss or gradient not finite, update skipped; clips: {', '.join(names[i])}")
            if self._in_a_row >= run.training.max_bad_steps:
                raise RunEnded(
                    f"step {step}", found=f"{self._in_a_row} non-finite updates in a row, all skipped",
                    fix="check the clips named above, or lower training.learning_rate, then --resume", exit_code=1,
                )
