"""Embedded audio of Parquet files: unpacked byte for byte, once; broken files give only a message."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from builds import spoil, write_rows

from xtts.precompute.archives.parquet_files import unpacked_row
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.errors import LockstepError

VALUES = [np.random.default_rng(number).bytes(50_000) for number in range(4)]
PAGES = {"use_dictionary": False, "data_page_size": 1000, "write_batch_size": 1}


@pytest.mark.parametrize(("compression", "dictionary", "version"), [("snappy", True, "1.0"), ("none", False, "2.0")])
def test_audio_is_unpacked_byte_for_byte(tmp_path, compression, dictionary, version):
    data = write_rows(tmp_path / "x.parquet", VALUES, row_group_size=3, compression=compression,
               use_dictionary=dictionary, data_page_version=version)
    for row in (0, 2, 3, 1, 1):
        assert unpacked_row(data, str(row), tmp_path).read_bytes() == VALUES[row]


def test_a_row_group_is_unpacked_once(tmp_path):
    data = write_rows(tmp_path / "x.parquet", [VALUES[0], None, VALUES[2]], row_group_size=2)
    assert unpacked_row(data, "0", tmp_path).read_bytes() == VALUES[0]
    spoil(data)
    with pytest.raises(AudioProblem, match="the row holds no audio"):
        unpacked_row(data, "1", tmp_path)
    with pytest.raises(AudioProblem, match="unreadable audio"):
        unpacked_row(data, "2", tmp_path)


def test_several_workers_share_a_row_group_in_little_memory(tmp_path):
    values = [np.random.default_rng(number).bytes(500_000) for number in range(60)]
    data, own = write_rows(tmp_path / "x.parquet", values, **PAGES), pa.default_memory_pool()
    pa.set_memory_pool(pool := pa.proxy_memory_pool(own))
    with ThreadPoolExecutor(4) as workers:
        paths = list(workers.map(lambda row: unpacked_row(data, str(row), tmp_path), range(60)))
    pa.set_memory_pool(own)
    assert [path.read_bytes() for path in paths] == values
    assert 0 < pool.max_memory() < 15_000_000, "of 30 MB"


def test_rows_before_a_broken_page_are_unpacked_once(tmp_path):
    values = [np.random.default_rng(number).bytes(20_000) for number in range(40)]
    data = write_rows(tmp_path / "x.parquet", values, **PAGES)
    content = bytearray(data.read_bytes())
    content[700_000:740_000] = b"\xff" * 40_000  # rows 34 to 36
    data.write_bytes(content)
    assert unpacked_row(data, "0", tmp_path).read_bytes() == values[0]
    spoil(data)
    for row in (39, 38):
        with pytest.raises(AudioProblem, match=r"unreadable audio: x\.parquet: "):
            unpacked_row(data, str(row), tmp_path)
    assert unpacked_row(data, "20", tmp_path).read_bytes() == values[20]


def test_a_rewritten_file_is_unpacked_again_in_a_folder_that_exists(tmp_path):
    data = write_rows(tmp_path / "x.parquet", VALUES)
    assert unpacked_row(data, "0", tmp_path).read_bytes() == VALUES[0]
    write_rows(data, VALUES[::-1][:3])
    assert unpacked_row(data, "0", tmp_path).read_bytes() == VALUES[3]
    with pytest.raises(LockstepError, match="away: not visible from"):
        unpacked_row(data, "0", tmp_path / "away")
