"""Rows of Parquet files: read back byte for byte; of broken and hostile files only a message comes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import write_rows

from xtts.precompute.archives import parquet_rows
from xtts.precompute.archives.parquet_pages import BrokenParquet, read_footer
from xtts.precompute.archives.parquet_rows import open_table, read_row
from xtts.shared.errors import LockstepError

VALUES = [np.random.default_rng(number).bytes(50_000) for number in range(4)]


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_are_read_back(tmp_path, compression, dictionary, version):
    data = write_rows(tmp_path / "x.parquet", VALUES, row_group_size=3, compression=compression,
               use_dictionary=dictionary, data_page_version=version)  # fmt: skip
    assert [read_row(data, str(row)) for row in (0, 2, 3, 1, 1)] == [VALUES[row] for row in (0, 2, 3, 1, 1)]


def test_row_groups_without_rows_are_passed_over(tmp_path):
    data = write_rows(tmp_path / "x.parquet", [VALUES[0], None])
    with pq.ParquetWriter(tmp_path / "gaps.parquet", pq.read_schema(data)) as writer:
        for rows in (0, 2, 0):
            writer.write_table(pq.read_table(data).slice(0, rows))
    assert read_row(tmp_path / "gaps.parquet", "0") == VALUES[0]
    assert len(open_table(tmp_path / "gaps.parquet").filled_groups()) == 1


def test_a_page_that_is_too_large_is_refused_by_name(tmp_path, monkeypatch):
    data = write_rows(tmp_path / "x.parquet", [VALUES[0], VALUES[1], VALUES[2] * 3], row_group_size=2)
    monkeypatch.setattr(parquet_rows, "LARGEST_PAGE_BYTES", 2**17)
    assert read_row(data, "1") == VALUES[1]
    with pytest.raises(LockstepError) as caught:
        read_row(data, "2")
    assert str(caught.value) == (
        f"{data} row group 1: pages of 0 MiB in column audio.bytes, expected at most 0 MiB; "
        "write it again with smaller row groups, as pyarrow does with row_group_size=100"
    )


def test_a_file_that_claims_more_rows_than_bytes_is_refused(tmp_path):
    nothing = pa.array([None] * 1_000_000, pa.binary())
    pq.write_table(pa.table({"audio": nothing}), tmp_path / "x.parquet")
    with pytest.raises(BrokenParquet, match=r"1000000 rows in a file of \d{4} bytes"):
        read_footer(str(tmp_path / "x.parquet"))
