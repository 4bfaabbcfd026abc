"""A cache of Parquet files, built again: what is read, and which shards are written."""

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import build, problems, shards
from cache_files import index_path

from xtts.precompute.archives import parquet_files
from xtts.precompute.pipeline.build_cache import BuildReport
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config

CONFIG = load_config("tiny", flags={"shapes.buckets": 3, "split.validation_fraction": 0.2, "shards.shard_mb": 1})
CLIPS = 150


@pytest.fixture(scope="module")
def rows(tone_corpus, tmp_path_factory) -> list[dict[str, object]]:
    folder = tone_corpus(tmp_path_factory.mktemp("rebuild") / "corpus", CLIPS, seconds=(0.6, 1.5), seed=5)
    lines = [line.split("|") for line in (folder / "metadata.csv").read_text().splitlines()]
    return [{"id": clip, "audio": {"bytes": (folder / "wavs" / f"{clip}.wav").read_bytes(), "path": None},
             "text": text, "normalized_text": text} for clip, _, text in lines]  # fmt: skip


@pytest.fixture(scope="module")
def built(rows, tmp_path_factory) -> Path:
    """A folder with `corpus` of two files and its `cache`; do not change them."""
    folder = tmp_path_factory.mktemp("parquet")
    write(folder, rows)
    update(folder)
    return folder


@pytest.fixture
def workspace(built, tmp_path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(built, tmp_path, dirs_exist_ok=True))


def write(workspace: Path, rows: list[dict[str, object]], row_group: int = 20) -> None:
    (workspace / "corpus").mkdir(exist_ok=True)
    for number, part in enumerate((rows[:100], rows[100:])):
        pq.write_table(pa.Table.from_pylist(part), workspace / "corpus" / f"{number}.parquet", row_group_size=row_group)


def update(workspace: Path, **options: object) -> BuildReport:
    return build(workspace / "corpus", workspace / "cache", CONFIG, **options)


def test_a_row_that_changed_rewrites_its_shard_alone(workspace, rows):
    before = shards(workspace / "cache")
    changed = dict(rows[33])
    samples = np.frombuffer(changed["audio"]["bytes"], np.uint8).copy()
    samples[44:] = np.roll(samples[44:], 2)
    changed["audio"] = {"bytes": samples.tobytes(), "path": None}
    write(workspace, [*rows[:33], changed, *rows[34:]])
    report = update(workspace)
    after = shards(workspace / "cache")
    (row,) = [row for row in read_index(index_path(workspace / "cache")) if row.clip.id == rows[33]["id"]]
    where = f"{row.split}/bucket-{row.bucket:02d}/"
    (different,) = [name for name in after if after[name] != before.get(name)]
    assert different.startswith(where)
    assert len(before) > 3
    assert report.written_shards == 1
    again = update(workspace)
    assert (again.changed, again.written_shards) == (False, 0)
    assert shards(workspace / "cache") == after


def test_rows_may_move(workspace, rows):
    before = shards(workspace / "cache")
    write(workspace, rows[::-1])
    assert update(workspace).written_shards == 0
    assert shards(workspace / "cache") == before
    sources = {row.clip.id: row.clip.source for row in read_index(index_path(workspace / "cache"))}
    assert sources[rows[-1]["id"]] == "0.parquet/0"


def test_the_same_bytes_for_any_workers_and_row_groups(workspace, rows):
    before = shards(workspace / "cache")
    write(workspace, rows, row_group=1000)
    update(workspace, workers=2, fresh=True)
    assert shards(workspace / "cache") == before
    assert not (workspace / "cache" / ".building").exists()


def test_a_lost_shard_is_written_again_and_the_cache_is_sound(workspace):
    before = shards(workspace / "cache")
    lost = sorted((workspace / "cache").rglob("*.tfrecord"))[1]
    lost.write_bytes(b"broken")
    assert problems(workspace / "cache", workspace / "corpus", repair=True) == []
    index_path(workspace / "cache").write_bytes(b"broken")
    assert problems(workspace / "cache", workspace / "corpus", repair=True) == []
    assert shards(workspace / "cache") == before
    os.utime(workspace / "corpus" / "0.parquet", ns=(1, 1))
    assert problems(workspace / "cache", workspace / "corpus", deep=20) == []


def test_nothing_is_unpacked_again_while_the_files_are_the_same(workspace, monkeypatch):
    monkeypatch.setattr(parquet_files, "_audio", None)
    assert not update(workspace).changed
