"""A cache of Parquet files, built again: what is read, and which shards are written."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cache_files import index_path

from xtts.precompute.archives import parquet_rows
from xtts.precompute.build import build_cache as build_module
from xtts.precompute.build.build_cache import BuildReport, build_cache
from xtts.precompute.check.verify_command import VerifyRequest, find_problems
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

CONFIG = load_config("tiny", flags={"shapes.buckets": 3, "split.validation_fraction": 0.2, "shards.shard_mb": 1})
CLIPS, ROW_GROUP = 150, 20


@pytest.fixture(scope="module")
def rows(tone_corpus, tmp_path_factory) -> list[dict[str, object]]:
    folder = tone_corpus(tmp_path_factory.mktemp("rebuild") / "corpus", CLIPS, seconds=(0.6, 1.5), seed=5)
    lines = [line.split("|") for line in (folder / "metadata.csv").read_text().splitlines()]
    return [{"id": clip, "audio": {"bytes": (folder / "wavs" / f"{clip}.wav").read_bytes(), "path": None},
             "text": text, "normalized_text": text} for clip, _, text in lines]  # fmt: skip


@pytest.fixture
def place(rows, tmp_path) -> Path:
    """A folder with `corpus` of two files and its `cache`."""
    write(tmp_path, rows)
    build(tmp_path)
    return tmp_path


def write(place: Path, rows: list[dict[str, object]]) -> None:
    (place / "corpus").mkdir(exist_ok=True)
    for number, part in enumerate((rows[:100], rows[100:])):
        pq.write_table(pa.Table.from_pylist(part), place / "corpus" / f"{number}.parquet", row_group_size=ROW_GROUP)


def build(place: Path, **options: object) -> BuildReport:
    options = {"workers": 1, "progress": NullProgress(), **options}
    return build_cache(place / "corpus", place / "cache", CONFIG, **options)


def shards(cache: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p.relative_to(cache)): (p.read_bytes(), p.stat().st_mtime_ns) for p in cache.rglob("*.tfrecord")}


@pytest.fixture
def read(monkeypatch) -> list[tuple[str, int]]:
    """(column, row group) of the pages that are read."""
    seen, batches = [], parquet_rows.Table.batches

    def batches_seen(self, group, leaves, rows):
        seen.extend((leaf, group) for leaf in leaves)
        return batches(self, group, leaves, rows)

    monkeypatch.setattr(parquet_rows.Table, "batches", batches_seen)
    return seen


def test_no_audio_is_read_of_a_file_that_has_not_changed(place, read, in_process):
    before = shards(place / "cache")
    report = build(place, pool=in_process)
    assert (report.changed, report.written_shards) == (False, 0)
    assert shards(place / "cache") == before
    assert {leaf for leaf, _ in read} == {"text", "normalized_text", "id"}


def test_a_row_that_changed_rewrites_its_shard_alone(place, rows, read, in_process):
    before = shards(place / "cache")
    changed = dict(rows[33])
    samples = np.frombuffer(changed["audio"]["bytes"], np.uint8).copy()
    samples[44:] = np.roll(samples[44:], 2)
    changed["audio"] = {"bytes": samples.tobytes(), "path": None}
    write(place, [*rows[:33], changed, *rows[34:]])
    report = build(place, pool=in_process)
    after = shards(place / "cache")
    (row,) = [row for row in read_index(index_path(place / "cache")) if row.clip.id == rows[33]["id"]]
    where = f"{row.place.split}/bucket-{row.place.bucket:02d}/"
    (different,) = [name for name in after if after[name] != before.get(name)]
    assert different.startswith(where)
    assert len(before) > 3
    assert report.written_shards == 1
    audio = [group for leaf, group in read if leaf == "audio.bytes"]
    assert audio == [0, 1, 2, 3, 4, 0, 1, 2, 1]  # digests of all, then the row itself
    read.clear()
    assert build(place, pool=in_process).changed is False
    assert "audio.bytes" not in {leaf for leaf, _ in read}


def test_rows_may_move(place, rows):
    before = {name: data for name, (data, _) in shards(place / "cache").items()}
    write(place, rows[::-1])
    assert build(place).written_shards == 0
    assert {name: data for name, (data, _) in shards(place / "cache").items()} == before
    members = {row.clip.id: row.clip.member for row in read_index(index_path(place / "cache"))}
    assert members[rows[-1]["id"]] == "0"


def test_the_same_bytes_for_any_workers_and_row_groups(place, rows, monkeypatch):
    before = {name: data for name, (data, _) in shards(place / "cache").items()}
    monkeypatch.setitem(globals(), "ROW_GROUP", 1000)
    write(place, rows)
    build(place, workers=2, fresh=True)
    assert {name: data for name, (data, _) in shards(place / "cache").items()} == before
    assert not (place / "cache" / ".building").exists()


def test_a_lost_shard_is_written_again_and_the_cache_is_verified_against_its_corpus(place):
    before = {name: data for name, (data, _) in shards(place / "cache").items()}
    lost = sorted((place / "cache").rglob("*.tfrecord"))[1]
    lost.write_bytes(b"broken")
    request = {"cache": place / "cache", "against": place / "corpus", "workers": 1}
    assert find_problems(VerifyRequest(**request, deep=None, repair=True), NullProgress()) == []
    index_path(place / "cache").write_bytes(b"broken")
    assert find_problems(VerifyRequest(**request, deep=None, repair=True), NullProgress()) == []
    assert {name: data for name, (data, _) in shards(place / "cache").items()} == before
    os.utime(place / "corpus" / "0.parquet", ns=(1, 1))
    assert find_problems(VerifyRequest(**request, deep=20, repair=False), NullProgress()) == []


def test_copies_of_audio_go_with_a_build_that_fails(rows, tmp_path, monkeypatch, in_process):
    write(tmp_path, rows)
    copied = []

    def fail(*_: object) -> None:
        copied.extend(path.name for path in (tmp_path / "cache" / ".building" / "parts").glob("*/audio/*"))
        raise LockstepError("a disk", found="broken")

    monkeypatch.setattr(build_module, "write_shard", fail)
    with pytest.raises(LockstepError, match="a disk: broken"):
        build(tmp_path, pool=in_process)
    assert sorted(name.partition("-")[2] for name in copied) == [f"audio-{number}" for number in range(8)]
    assert not list((tmp_path / "cache").rglob("audio-*"))


def test_a_file_that_changes_during_a_build_ends_it(rows, tmp_path, monkeypatch, in_process):
    write(tmp_path, rows)
    plan = build_module.plan_fetch

    def touch(*arguments: object) -> object:
        os.utime(tmp_path / "corpus" / "1.parquet", ns=(1, 1))
        return plan(*arguments)

    monkeypatch.setattr(build_module, "plan_fetch", touch)
    with pytest.raises(LockstepError, match=r"1\.parquet: changed while the cache was being built"):
        build(tmp_path, pool=in_process)


def test_copies_that_cannot_fit_are_not_begun(rows, tmp_path, monkeypatch, in_process):
    write(tmp_path, rows)
    wanted = []
    monkeypatch.setattr(build_module, "check_free_space", lambda _, size: wanted.append(size))
    build(tmp_path, pool=in_process)
    audio = sum(len(row["audio"]["bytes"]) for row in rows)
    shard_bytes = sum(len(data) for data, _ in shards(tmp_path / "cache").values())
    assert audio + 0.9 * shard_bytes < wanted[0] < 1.02 * audio + 1.1 * shard_bytes
