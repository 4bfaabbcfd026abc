"""Naming the clips of a step that was not finite, in a large cache."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cache_files import index_bytes

from xtts.shared.cache.cache_spec import shard_file
from xtts.shared.cache.clip_index import ShardId
from xtts.trainer.run.bad_clips import clip_names

SHARD = 250


@pytest.mark.parametrize("rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_the_clips_of_a_batch_are_named_without_the_whole_index_in_memory(tmp_path, kept_row, rows):
    """All rows were read into objects, and every name of the split was kept."""
    table = pq.read_table(pa.BufferReader(index_bytes([kept_row("a", 1, 1)])))
    numbers, last = np.arange(rows), rows // 2 // SHARD - 1
    columns = {name: pa.repeat(table[name][0], rows) for name in table.column_names}
    columns |= {"id": pa.array(numbers.astype(str)), "bucket": pa.array(numbers % 2)}
    columns |= {"shard": pa.array(numbers // 2 // SHARD), "position": pa.array(numbers // 2 % SHARD)}
    status = np.where(numbers % 10 == 7, "rejected", "kept")
    columns |= {"status": pa.array(status), "split": pa.array(np.where(numbers >= rows - 1000, "validation", "train"))}
    pq.write_table(pa.table(columns, table.schema), tmp_path / "index.parquet", row_group_size=2**16)
    shards = [SimpleNamespace(file=shard_file(ShardId("train", 1, shard), 2000)) for shard in range(2000)]
    spec = SimpleNamespace(index_file="index.parquet", buckets=[None, SimpleNamespace(shards=lambda split: shards)])
    tracemalloc.start()
    found = clip_names(tmp_path, spec, "train", [(1, [(123, 56), (0, 0)]), (1, [(7, 3), (last, 249)])])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    first = str(2 * (123 * SHARD + 56) + 1)
    lost = [
        "train/bucket-01/shard-00007-of-02000.tfrecord:3", f"train/bucket-01/shard-{last:05d}-of-02000.tfrecord:249",
    ]
    assert found == [[first, "1"], lost]  # the row of one is rejected, that of the other is of another split
    assert peak < 2**23
