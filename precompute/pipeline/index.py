"""Index: write the rows of all clips, in the order of the shards, and compute the statistics of the cache."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.features.clip_features import Sums, sums_of_clips
from xtts.precompute.features.tables import pack, with_status
from xtts.precompute.pipeline.plan import Plan, ShardPlan
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import Statistics
from xtts.shared.cache.clip_index import KEPT, QUALITIES, index_schema, strings, with_column
from xtts.shared.config import Config

_GROUP_ROWS = 2**14
SAMPLE_CLIPS = 1024
"""Training clips that give mean and deviation of the mels of a cache without mels; exact for up to so many clips."""
_CHUNK = 16
_REPEATED = ["speaker", "status", "reason", "notes", "split", "bucket", "shard", "language", "corpus"]
"""Columns with few different values: stored with a dictionary, and readers choose row groups by them."""

_SUMMED = [
    "status", "split", "bucket", "token_length", "mel_length", "seconds", "audio_sha256", "mel_sum", "mel_square_sum",
]
"""Columns that give the statistics."""


def write_tables(target: Path | IO[bytes], tables: Iterable[pa.Table]) -> None:
    """Write an index; each table begins a row group, and equal tables give equal bytes."""
    with pq.ParquetWriter(
        target, index_schema(), compression="zstd", write_statistics=_REPEATED,
        use_dictionary=_REPEATED,  # type: ignore[arg-type]
    ) as writer:
        for table in tables:
            if len(table):  # in one piece: chunks of rows must not show in the bytes
                writer.write_table(table.replace_schema_metadata(None).combine_chunks(), _GROUP_ROWS)


def write_index(
    path: Path, plan: Plan, rows_of: Callable[[ShardPlan], pa.Table], rejected: pa.Table, config: Config,
    sums: Mapping[str, Sums] | None,
) -> tuple[Statistics, list[float]]:
    """Write the index to a file: shard by shard, with no row group in two buckets; then the rejected clips.

    rows_of: returns the rows of a shard; clips that were rejected while it was written are in `rejected`
    instead. sums: of `measure_sample`, for a cache without mels.

    Returns figures of the corpus, and useful frames / stored frames of each bucket.
    """
    summed = list[pa.Table]()

    def groups() -> Iterator[pa.Table]:
        for _, shards in groupby(plan.shards, key=lambda shard: shard.id[:2]):
            kept = with_status(KEPT, map(rows_of, shards))
            kept = kept if sums is None else _with_sums(kept, sums)
            summed.append(kept.select(_SUMMED))
            yield kept
        # Without digests: not every build reads the audio of a rejected clip.
        yield with_column(rejected, "audio_sha256", [""] * len(rejected))

    write_tables(path, groups())
    return _statistics(with_status(KEPT, summed), len(rejected), plan, config)


def _statistics(kept: pa.Table, rejected: int, plan: Plan, config: Config) -> tuple[Statistics, list[float]]:
    """Compute the statistics: sums are exact and rounded once, so the order of the clips does not matter."""
    frames, bucket = kept["mel_length"].to_numpy(), kept["bucket"].to_numpy()
    lengths = np.array([shape.frames for shape in plan.shapes])
    stored = lengths[bucket] if config.shapes.pad_to_fixed_length else frames
    useful_frames, stored_frames = (np.bincount(bucket, counts, len(lengths)) for counts in (frames, stored))
    measured = kept.filter(pc.and_(pc.equal(kept["split"], "train"), pc.not_equal(kept["audio_sha256"], "")))
    values = max(1, int(measured["mel_length"].to_numpy().sum()) * mel_profile(config.audio.profile).mel_channels)
    mean = math.fsum(measured["mel_sum"].to_numpy()) / values
    variance = math.fsum(measured["mel_square_sum"].to_numpy()) / values - mean**2
    statistics = Statistics(
        clips=len(kept), rejected=rejected, seconds=math.fsum(kept["seconds"].to_numpy()), frames=int(frames.sum()),
        tokens=int(kept["token_length"].to_numpy().sum()), mel_mean=mean, mel_deviation=math.sqrt(max(0.0, variance)),
        fill=int(frames.sum()) / int(stored.sum()),
    )
    return statistics, (useful_frames / np.maximum(stored_frames, 1)).tolist()


def measure_sample(
    plan: Plan, rows_of: Callable[[ShardPlan], pa.Table], recipe: RecordRecipe, pool: WorkerPool, progress: Progress,
) -> dict[str, Sums]:
    """Compute the mels of a sample of the kept training clips, chosen by digest; return clip id to sums.

    For a cache without mels. rows_of: returns the rows of a shard.
    """
    rows = pa.concat_tables([index_schema().empty_table(), *map(rows_of, plan.shards)])
    clips = np.concatenate([np.zeros(0, np.uint32), *(shard.clips for shard in plan.shards)])
    kept = pc.and_(pc.equal(rows["status"], KEPT), pc.equal(rows["split"], "train"))
    sample = np.flatnonzero(kept.to_numpy())
    if len(sample) > SAMPLE_CLIPS:
        sample = sample[np.argpartition(plan.columns.high[clips[sample]], SAMPLE_CLIPS - 1)[:SAMPLE_CLIPS]]
    sample = sample[np.argsort(clips[sample])]
    rows = rows.take(sample)
    progress.start("statistics", len(sample))
    chunks = (pack(rows.slice(start, _CHUNK)) for start in range(0, len(sample), _CHUNK))
    sums = dict[str, Sums]()
    for sums_of_chunk in pool.run(partial(sums_of_clips, recipe), chunks):
        sums.update(sums_of_chunk)
        progress.advance(len(sums_of_chunk), 0.0)
    return sums


def _with_sums(rows: pa.Table, sums: Mapping[str, Sums]) -> pa.Table:
    """Rows of a cache without mels, with digests and sums of the sample alone, and without quality."""
    values = [sums.get(name, ("", 0.0, 0.0)) for name in strings(rows["id"])]
    columns = dict(zip(("audio_sha256", "mel_sum", "mel_square_sum"), zip(*values, strict=True), strict=False))
    for name in (*columns, *QUALITIES):
        rows = with_column(rows, name, columns.get(name, [None] * len(rows)))
    return rows
