"""The index of a build, in the order of the shards, and the figures that `cache.json` tells."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from xtts.precompute.features.extract import Sums
from xtts.precompute.pipeline.shard_plan import Plan, ShardPlan
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import Statistics
from xtts.shared.cache.clip_index import KEPT, QUALITIES, index_schema, strings, with_column
from xtts.shared.config import Config

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP_ROWS = 2**14
_REPEATED = ["speaker", "status", "reason", "notes", "split", "bucket", "shard", "language", "corpus"]
"""Columns with few different values, which a dictionary makes smaller, and by which a reader chooses row groups."""

_SUMMED = [
    "status", "split", "bucket", "token_length", "mel_length", "seconds", "audio_sha256", "mel_sum", "mel_square_sum",
]  # fmt: skip
"""Columns of which the statistics are."""


def write_tables(target: Path | IO[bytes], tables: Iterable["pa.Table"]) -> None:
    """Write an index; equal tables give equal bytes, and each begins a row group."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(
        target,
        index_schema(),
        compression="zstd",
        use_dictionary=_REPEATED,  # type: ignore[arg-type]
        write_statistics=_REPEATED,
    ) as writer:
        for table in tables:
            if len(table):  # in one piece: how its rows came in must not show in the bytes
                writer.write_table(table.replace_schema_metadata(None).combine_chunks(), _GROUP_ROWS)


def write_index(
    path: Path, plan: Plan, rows_of: Callable[[ShardPlan], "pa.Table"], rejected: "pa.Table", config: Config
) -> tuple[Statistics, list[float]]:  # fmt: skip
    """Write the index to a file: shard by shard, a row group never in two buckets; then the rejected clips.

    rows_of: the rows of a shard; those that writing it rejected are left out, and are among `rejected`.

    Returns figures of the corpus, and useful frames / stored frames of each bucket.
    """
    figures = list["pa.Table"]()

    def groups() -> Iterator["pa.Table"]:
        for _, shards in groupby(plan.shards, key=lambda shard: shard.place[:2]):
            kept = _kept_rows(map(rows_of, shards))
            figures.append(kept.select(_SUMMED))
            yield kept
        # Not every build reads the audio of a rejected clip.
        yield with_column(rejected, "audio_sha256", [""] * len(rejected))

    write_tables(path, groups())
    return _statistics(_kept_rows(figures), len(rejected), plan, config)


def _kept_rows(tables: Iterable["pa.Table"]) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.concat_tables([table.filter(pc.equal(table["status"], KEPT)) for table in tables])


def _statistics(kept: "pa.Table", rejected: int, plan: Plan, config: Config) -> tuple[Statistics, list[float]]:
    """The sums are exact, so that no order of the clips can show in them, and rounded once."""
    import pyarrow.compute as pc

    frames, bucket = kept["mel_length"].to_numpy(), kept["bucket"].to_numpy()
    lengths = np.array([shape.frames for shape in plan.shapes])
    stored = lengths[bucket] if config.shapes.pad_to_fixed_length else frames
    useful, whole = (np.bincount(bucket, some, len(lengths)) for some in (frames, stored))
    known = kept.filter(pc.and_(pc.equal(kept["split"], "train"), pc.not_equal(kept["audio_sha256"], "")))
    values = max(1, int(known["mel_length"].to_numpy().sum()) * mel_profile(config.audio.profile).mel_channels)
    mean = math.fsum(known["mel_sum"].to_numpy()) / values
    variance = math.fsum(known["mel_square_sum"].to_numpy()) / values - mean**2
    statistics = Statistics(
        clips=len(kept), rejected=rejected, seconds=math.fsum(kept["seconds"].to_numpy()), frames=int(frames.sum()),
        tokens=int(kept["token_length"].to_numpy().sum()), mel_mean=mean, mel_deviation=math.sqrt(max(0.0, variance)),
        fill=int(frames.sum()) / int(stored.sum()),
    )  # fmt: skip
    return statistics, (useful / np.maximum(whole, 1)).tolist()


def with_sums(table: "pa.Table", sample: Mapping[str, Sums]) -> "pa.Table":
    """Rows of a cache without mels, with digests and sums of the sample alone, and without quality.

    sample: of clips by id.
    """
    sums = [sample.get(name, ("", 0.0, 0.0)) for name in strings(table["id"])]
    columns = dict(zip(("audio_sha256", "mel_sum", "mel_square_sum"), zip(*sums, strict=True), strict=False))
    for name in (*columns, *QUALITIES):
        table = with_column(table, name, columns.get(name, [None] * len(table)))
    return table
