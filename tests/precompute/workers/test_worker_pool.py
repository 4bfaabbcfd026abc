"""What the pools of this machine promise, and what a worker does on a machine that does not suit it."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from operator import add
from pathlib import Path

import pytest
from builds import build, wait_for

from xtts.precompute.features.clip_features import read_mel
from xtts.precompute.pipeline import scan
from xtts.precompute.pipeline.build_request import make_request
from xtts.precompute.workers.disks import attempt_path
from xtts.precompute.workers.open_pool import open_pool
from xtts.precompute.workers.worker_pool import ThisProcess, WorkerPool
from xtts.shared.cache.clip_index import IndexRow, clips_of
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files


@pytest.fixture(params=[0, 1], ids=["this process", "workers"])
def pool(request) -> WorkerPool:
    return open_pool(request.param)


def test_tasks_are_taken_as_results_come(pool):
    taken, found = list[int](), list[str]()
    with pool:
        for result in pool.run(partial(add, "feature extractor "), (taken.append(n) or str(n) for n in range(20))):
            found.append(result)
            assert len(taken) <= len(found) + 4  # two for each processor
    assert sorted(found) == sorted(f"feature extractor {number}" for number in range(20))


def test_the_error_of_a_task_is_raised_by_the_pool(pool, tmp_path):
    with pool:
        with pytest.raises(LockstepError, match="elsewhere: not visible from"):
            list(pool.run(attempt_path, [tmp_path / "elsewhere" / "part"]))
        with pytest.raises(OSError, match="No such file") as caught:
            list(pool.run(os.stat, [str(tmp_path / "nothing")]))
    assert caught.value.errno == errno.ENOENT


def test_a_worker_that_dies_is_a_one_line_error():
    with pytest.raises(LockstepError, match=r"a worker process: died .*; free memory or"), open_pool(1) as pool:
        list(pool.run(os._exit, [1]))


def test_an_interrupt_is_blocked_where_a_worker_starts_and_nowhere_else():
    blocked = partial(signal.pthread_sigmask, signal.SIG_BLOCK)
    with open_pool(1) as pool:
        assert list(pool.run(blocked, [()])) == [{signal.SIGINT}]
    assert signal.SIGINT not in blocked(())


def test_workers_end_with_their_parent_even_by_kill_9():
    code = """
import os, time
from xtts.precompute.workers.worker_pool import ProcessPool
with ProcessPool(1) as pool:
    print(*pool.run(os.readlink, ["/proc/self"]), flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        worker = Path("/proc", parent.stdout.readline().strip())
        assert (worker / "exe").exists()
        parent.kill()
    wait_for(lambda: not (worker / "exe").exists())


def test_an_unknown_engine_and_a_missing_ray_are_reported_with_the_fix(monkeypatch):
    with pytest.raises(LockstepError, match="--engine: 'dask', expected local or ray"):
        open_pool(1, "dask")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(LockstepError, match=r"ray is not installed; pip install 'lockstep-tts\[ray\]'"):
        list(open_pool(1, "ray").run(os.getenv, ["HOME"]))


@pytest.mark.parametrize(("address", "found"), [
    ("127.0.0.1:1", r"RAY_ADDRESS=127\.0\.0\.1:1: no Ray cluster \(.*\); start one there .*, or unset RAY_ADDRESS"),
    *((address, "expected auto or HOST:PORT") for address in ("6379", "ray://here:10001", "http://here:1")),
])
def test_an_address_without_a_cluster_is_rejected(monkeypatch, address, found):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(LockstepError, match=found):
        list(open_pool(1, "ray").run(os.getenv, ["HOME"]))


def test_an_unmounted_corpus_stops_the_build(tiny_corpus, tiny_config, tmp_path):
    """Its clips must not look like clips that cannot be read."""
    request = make_request(tiny_corpus, tmp_path / "cache", tiny_config)
    clip = next(clips_of(request.corpora.clips))
    (tmp_path / "corpus").mkdir()
    seen_elsewhere = IndexRow(clip=clip, source_bytes=1000, source_mtime_ns=1)
    unmounted = replace(request.recipe, roots={clip.corpus: tmp_path / "corpus"})
    with pytest.raises(LockstepError, match=r"tone-0000\.wav: gone, or not visible from "):
        read_mel(seen_elsewhere, unmounted)


def test_a_recording_unseen_by_another_machine_stops_the_build(tiny_corpus, tiny_config, tmp_path, monkeypatch):
    """The command looks itself: the clip must not count as one without audio."""
    find = scan.with_file

    def find_most(clip, recipe):
        return IndexRow(clip=clip) if clip.id == "tone-0003" else find(clip, recipe)

    monkeypatch.setattr(scan, "with_file", find_most)
    pool = ThisProcess()
    pool.spans_machines = True
    with pytest.raises(LockstepError, match=r"tone-0003\.wav: not visible from another machine; mount the corpus"):
        build(tiny_corpus, tmp_path / "cache", tiny_config, pool=pool)


@pytest.mark.parametrize(
    ("elsewhere", "change"), [(True, lambda data: data[:-1] + b"?"), (False, lambda data: data[:-1])]
)
def test_a_shard_that_arrives_changed_stops_the_build(tiny_corpus, tiny_config, tmp_path, elsewhere, change):
    """Of another machine by its digest, of this one by its size."""

    def run(function, tasks):
        for result in map(function, tasks):
            if isinstance(result, Path):
                result.write_bytes(change(result.read_bytes()))
            yield result

    pool = ThisProcess()
    pool.spans_machines, pool.run = elsewhere, run
    cache = tmp_path / "cache"
    with pytest.raises(LockstepError, match=r"\.tfrecord: not what a worker wrote, or not all of it; check the disk"):
        build(tiny_corpus, cache, tiny_config, pool=pool)
    assert not (cache / "cache.json").exists()


def test_workers_on_other_machines_sync_their_files(tiny_corpus, tiny_config, tmp_path, monkeypatch):
    synced, sync = set[str](), atomic_files.sync_file
    monkeypatch.setattr(atomic_files, "sync_file", lambda path: (synced.add(path.name), sync(path)))
    unsynced = set[str]()

    def run(function, tasks):
        for result in map(function, tasks):
            if isinstance(result, Path):
                unsynced.update({result.name, result.with_suffix(".arrow").name} - synced)
            yield result

    pool = ThisProcess()
    pool.spans_machines, pool.run = True, run
    build(tiny_corpus, tmp_path / "cache", tiny_config, pool=pool)
    assert not unsynced
    assert any(name.endswith("shard-00000-of-00001.arrow") for name in synced)
