"""An index at the sizes that a large corpus has."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cache_files import index_bytes

from xtts.shared.cache.clip_index import Clip, IndexRow, read_index, readable_index, rows_of


def test_an_index_of_several_groups_is_read_in_its_order(kept_row, tmp_path):
    rows = [kept_row(f"clip-{number}", 5, 10) for number in range(2**14 + 3)]
    (tmp_path / "index.parquet").write_bytes(index_bytes(rows))
    assert pq.read_metadata(tmp_path / "index.parquet").num_row_groups == 2
    assert [row.clip.id for row in read_index(tmp_path / "index.parquet")] == [row.clip.id for row in rows]


@pytest.mark.long
def test_an_index_of_more_than_2_to_the_25_rows_is_read(tmp_path):
    """A build wrote it, and nothing could read it."""
    path, rows, group = tmp_path / "index.parquet", 2**25 + 1, 2**20
    one = IndexRow(clip=Clip("a", "", "", "a.wav")).rejected("missing audio")
    table = pq.read_table(pa.BufferReader(index_bytes([one])))
    letters = np.random.default_rng(0).integers(97, 123, group, np.uint8).tobytes()
    ids = pa.StringArray.from_buffers(group, pa.py_buffer(np.arange(group + 1, dtype=np.int32)), pa.py_buffer(letters))
    same = {name: pa.repeat(table[name][0], group) for name in table.column_names}
    whole = pa.table({**same, "id": ids.cast(pa.large_string())}, table.schema)
    others = [name for name in table.column_names if name != "id"]
    packing = {"id": "DELTA_LENGTH_BYTE_ARRAY"}
    with pq.ParquetWriter(path, table.schema, use_dictionary=others, column_encoding=packing) as writer:
        for start in range(0, rows, group):
            writer.write_table(whole.slice(0, rows - start))
    assert pq.read_metadata(path).num_rows == rows
    with readable_index(path) as file:
        first = rows_of(pa.table(next(file.iter_batches(1))))
    assert first[0].clip.source == "a.wav"
