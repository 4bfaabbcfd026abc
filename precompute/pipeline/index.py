"""Index: write the rows of all clips, in the order of the shards, and compute the statistics of the cache."""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from xtts.precompute.features.tables import with_status
from xtts.precompute.pipeline.plan import Plan, ShardPlan
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import Statistics
from xtts.shared.cache.clip_index import KEPT, index_schema, with_column
from xtts.shared.config import Config

_GROUP_ROWS = 2**14
_REPEATED = ["speaker", "status", "reason", "notes", "split", "bucket", "shard", "language", "corpus"]
"""Columns with few different values: stored with a dictionary, and readers choose row groups by them."""

_SUMMED = ["status", "split", "bucket", "token_length", "mel_length", "seconds", "mel_sum", "mel_square_sum"]
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
) -> tuple[Statistics, list[float]]:
    """Write the index to a file: shard by shard, with no row group in two buckets; then the rejected clips.

    rows_of: returns the rows of a shard; clips that were rejected while it was written are in `rejected`
    instead.

    Returns figures of the corpus, and useful frames / stored frames of each bucket.
    """
    summed = list[pa.Table]()

    def groups() -> Iterator[pa.Table]:
        for _, shards in groupby(plan.shards, key=lambda shard: shard.id[:2]):
            kept = with_status(KEPT, map(rows_of, shards))
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
    measured = kept.filter(pc.equal(kept["split"], "train"))
    values = max(1, int(measured["mel_length"].to_numpy().sum()) * mel_profile(config.audio.profile).mel_channels)
    mean = math.fsum(measured["mel_sum"].to_numpy()) / values
    variance = math.fsum(measured["mel_square_sum"].to_numpy()) / values - mean**2
    statistics = Statistics(
        clips=len(kept), rejected=rejected, seconds=math.fsum(kept["seconds"].to_numpy()), frames=int(frames.sum()),
        tokens=int(kept["token_length"].to_numpy().sum()), mel_mean=mean, mel_deviation=math.sqrt(max(0.0, variance)),
        fill=int(frames.sum()) / int(stored.sum()),
    )
    return statistics, (useful_frames / np.maximum(stored_frames, 1)).tolist()
