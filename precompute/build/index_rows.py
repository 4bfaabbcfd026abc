"""The index of a build, written shard by shard in the order of their places, and the sums that `cache.json` tells."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xtts.precompute.build.ledger import Ledger
from xtts.precompute.build.shard_plan import Plan, ShardPlan
from xtts.precompute.features.extract import Sums
from xtts.precompute.features.row_parts import SCANNED_PARTS, part_path, read_table
from xtts.shared.cache.clip_index import KEPT, QUALITIES, REJECTED
from xtts.shared.cache.index_writer import IndexWriter


@dataclass(frozen=True, kw_only=True)
class ShardRows:
    """Where the rows of a finished shard are, as the index has them."""

    path: Path
    rejected: bool
    """Some clips turned out to be of no use when it was written."""


class ExactSum:
    """A sum of floats without rounding: neither the order of clips nor how they are divided can show in it."""

    def __init__(self) -> None:
        self._parts = list[float]()

    def add(self, values: Sequence[float]) -> None:
        """Add all of them."""
        rest, parts = [*self._parts, *values], list[float]()
        while top := math.fsum(rest):  # of what is left the nearest float, until nothing is left
            parts.append(top)
            rest.append(-top)
        self._parts = parts

    @property
    def value(self) -> float:
        """The float that is nearest to the sum."""
        return math.fsum(self._parts)


@dataclass(kw_only=True)
class Figures:
    """Sums over the kept clips of an index."""

    rows: int = 0
    """Of the index."""
    clips: int = 0
    """Kept ones."""
    tokens: int = 0
    """Theirs."""
    seconds: ExactSum = field(default_factory=ExactSum)
    mel_frames: int = 0
    """Of the training clips that have mel sums."""
    mel_sum: ExactSum = field(default_factory=ExactSum)
    mel_square_sum: ExactSum = field(default_factory=ExactSum)

    def add(self, table: Any, split: str) -> None:  # noqa: ANN401 - pyarrow ships no types
        """Add kept clips of a split."""
        self.clips += len(table)
        self.tokens += sum(table["token_length"].to_pylist())
        self.seconds.add(table["seconds"].to_pylist())
        if split == "train":
            known = table.filter([bool(digest) for digest in table["audio_sha256"].to_pylist()])
            self.mel_frames += sum(known["mel_length"].to_pylist())
            self.mel_sum.add(known["mel_sum"].to_pylist())
            self.mel_square_sum.add(known["mel_square_sum"].to_pylist())


def write_index(
    path: Path, plan: Plan, ledger: Ledger, shards: Mapping[str, ShardRows], sample: Mapping[str, Sums] | None
) -> Figures:
    """Write the index to a file: shard by shard, a row group never in two buckets; then the rejected clips.

    Args:
        path: The file.
        plan: The shards in order.
        ledger: Of which the rejected clips are taken.
        shards: By file without digest, all of the plan.
        sample: Of a cache without mels, the clips that have mel sums, by id: no other one has any, nor a quality.
    """
    figures, before = Figures(), (plan.shards[0].place.split, plan.shards[0].place.bucket)
    with IndexWriter(path) as writer:
        for shard in plan.shards:
            table = _with_status(read_table(shards[shard.file].path), KEPT)
            if sample is not None:
                table = _with_sums(table, sample)
            place = (shard.place.split, shard.place.bucket)
            if place != before:
                writer.end_group()
            before = place
            figures.add(table, shard.place.split)
            writer.add(table)
        writer.end_group()
        for table in _rejected(plan.shards, ledger, shards):
            writer.add(table)
        figures.rows = writer.rows
    return figures


def _rejected(shards: Sequence[ShardPlan], ledger: Ledger, rows: Mapping[str, ShardRows]) -> Iterator[Any]:
    """Clips that the scan rejected in their order, then those that writing their shards did."""
    for number in ledger.parts_with_rejected():
        yield _with_status(read_table(part_path(ledger.folder, SCANNED_PARTS, number)), REJECTED)
    for shard in shards:
        if rows[shard.file].rejected:
            yield _with_status(read_table(rows[shard.file].path), REJECTED)


def _with_status(table: Any, status: str) -> Any:  # noqa: ANN401
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["status"], status))


def _with_sums(table: Any, sample: Mapping[str, Sums]) -> Any:  # noqa: ANN401
    """Rows of a cache without mels, with digests and sums of the sample alone, and without quality."""
    import pyarrow as pa

    sums = [sample.get(name, ("", 0.0, 0.0)) for name in table["id"].to_pylist()]
    for name, values in zip(("audio_sha256", "mel_sum", "mel_square_sum"), zip(*sums, strict=True), strict=False):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(values, table.schema.field(name).type))
    for name in QUALITIES:
        field_ = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field_, pa.nulls(len(table), field_.type))
    return table
