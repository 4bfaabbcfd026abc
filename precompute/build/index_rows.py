"""The index of a build, in the order of the shards, and the sums that `cache.json` tells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from xtts.precompute.build.shard_plan import Plan
from xtts.precompute.features.extract import Sums
from xtts.shared.cache.clip_index import KEPT, QUALITIES, REJECTED, index_schema

_GROUP_ROWS = 2**14
_REPEATED = ["speaker", "status", "reason", "notes", "split", "bucket", "shard", "language", "corpus"]
"""Columns with few different values, which a dictionary makes smaller, and by which a reader chooses row groups."""


class IndexWriter:
    """Rows in the order that they come in; equal rows, ended at equal places, give equal bytes."""

    def __init__(self, target: Path | IO[bytes]) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(
            target, index_schema(), compression="zstd", use_dictionary=_REPEATED, write_statistics=_REPEATED
        )
        self._waiting = list[Any]()
        self._rows = 0
        self.rows = 0
        """Rows added so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.end_group()
        self._writer.close()

    def add(self, table: Any) -> None:  # noqa: ANN401 - pyarrow ships no types
        """Append the rows of an Arrow table with these columns."""
        table = table.replace_schema_metadata(None)
        self.rows += len(table)
        while self._rows + len(table) >= _GROUP_ROWS:
            rest = _GROUP_ROWS - self._rows
            self._waiting.append(table.slice(0, rest))
            table = table.slice(rest)
            self.end_group()
        if len(table):
            self._waiting.append(table)
            self._rows += len(table)

    def end_group(self) -> None:
        """Let the next row begin another row group."""
        import pyarrow as pa

        if self._waiting:
            # One chunk: how rows came in must not show in the bytes.
            self._writer.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Sums over the kept clips of an index. They are exact, so that no order of the clips can show in them."""

    rows: int
    """Of the index."""
    clips: int
    """Kept ones."""
    tokens: int
    """Theirs."""
    seconds: float
    mel_frames: int
    """Of the training clips that have mel sums."""
    mel_sum: float
    mel_square_sum: float
    bucket_frames: list[int]
    """True frames of each bucket."""
    bucket_clips: list[int]


def write_index(path: Path, plan: Plan, clips: Any, rows: Any) -> Figures:  # noqa: ANN401 - pyarrow ships no types
    """Write the index to a file: shard by shard, a row group never in two buckets; then the rejected clips.

    Args:
        path: The file.
        plan: The shards in order.
        clips: All clips after the scan.
        rows: The rows of all shards of the plan, one after the other; rejected are those that writing rejected.
    """
    start, before = 0, plan.shards[0].place[:2]
    with IndexWriter(path) as writer:
        for shard in plan.shards:
            if shard.place[:2] != before:
                writer.end_group()
            before = shard.place[:2]
            writer.add(_with_status(rows.slice(start, len(shard.clips)), KEPT))
            start += len(shard.clips)
        writer.end_group()
        for table in (clips, rows):
            rejected = _with_status(table, REJECTED)  # of which not every build reads the audio
            writer.add(_with_column(rejected, "audio_sha256", [""] * len(rejected)))
    return _figures(_with_status(rows, KEPT), writer.rows, len(plan.shapes))


def _figures(kept: Any, rows: int, buckets: int) -> Figures:  # noqa: ANN401
    import pyarrow.compute as pc

    frames, bucket = kept["mel_length"].to_numpy(), kept["bucket"].to_numpy()
    known = kept.filter(pc.and_(pc.equal(kept["split"], "train"), pc.not_equal(kept["audio_sha256"], "")))
    return Figures(
        rows=rows, clips=len(kept), tokens=int(kept["token_length"].to_numpy().sum()),
        seconds=math.fsum(kept["seconds"].to_numpy()),
        mel_frames=int(known["mel_length"].to_numpy().sum()),
        mel_sum=math.fsum(known["mel_sum"].to_numpy()),
        mel_square_sum=math.fsum(known["mel_square_sum"].to_numpy()),
        bucket_frames=np.bincount(bucket, frames, buckets).astype(np.int64).tolist(),
        bucket_clips=np.bincount(bucket, minlength=buckets).tolist(),
    )  # fmt: skip


def _with_status(table: Any, status: str) -> Any:  # noqa: ANN401
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["status"], status))


def with_sums(table: Any, sample: Mapping[str, Sums]) -> Any:  # noqa: ANN401
    """Rows of a cache without mels, with digests and sums of the sample alone, and without quality.

    sample: of clips by id.
    """
    sums = [sample.get(name, ("", 0.0, 0.0)) for name in table["id"].to_pylist()]
    columns = dict(zip(("audio_sha256", "mel_sum", "mel_square_sum"), zip(*sums, strict=True), strict=False))
    for name in (*columns, *QUALITIES):
        table = _with_column(table, name, columns.get(name, [None] * len(table)))
    return table


def _with_column(table: Any, name: str, values: Sequence[Any]) -> Any:  # noqa: ANN401
    import pyarrow as pa

    field = table.schema.field(name)
    return table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))
