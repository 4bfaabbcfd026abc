"""What every engine promises, shown on the local one; and what a worker does on a machine that it is not made for."""

import re
import socket
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from operator import add

import pytest

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.build.build_request import make_request
from xtts.precompute.features import scan_part
from xtts.precompute.features.extract import ShardResult
from xtts.precompute.features.scan import Found, scan_clip
from xtts.precompute.workers.open_engine import open_engine, ray_address_of
from xtts.precompute.workers.parts import new_part
from xtts.precompute.workers.progress import NullProgress
from xtts.precompute.workers.ray_engine import _prepare_process
from xtts.precompute.workers.versions import installed_versions
from xtts.shared.cache.clip_index import AudioFile
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files


class Counted(str):
    """Counts how often it is pickled."""

    __slots__ = ()
    times = 0

    def __reduce__(self) -> tuple[object, ...]:
        Counted.times += 1
        return str, (str(self),)


def test_what_is_bound_to_a_function_is_pickled_once(monkeypatch):
    monkeypatch.setattr(Counted, "times", 0)
    with open_engine(2) as engine:
        found = set(engine.run(partial(add, Counted("front end ")), map(str, range(20))))
    assert found == {f"front end {number}" for number in range(20)}
    assert Counted.times == 1


@pytest.mark.parametrize(
    ("engine", "address", "found"),
    [("local", None, None), ("ray", None, "local"), ("ray", "auto", "auto"), ("ray", "a:1", "a:1")],
)
def test_the_two_options_together_name_a_cluster(engine, address, found):
    assert ray_address_of(engine, address) == found


@pytest.mark.parametrize(("engine", "address"), [("local", "auto"), ("dask", None)])
def test_options_that_contradict_each_other(engine, address):
    with pytest.raises(LockstepError, match=r"--ray-address: no --engine ray|--engine: 'dask', expected local or ray"):
        ray_address_of(engine, address)


def test_an_installation_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(LockstepError, match=r"ray is not installed; pip install 'lockstep-tts\[ray\]'"):
        open_engine(1, "local").start()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:6379"])
def test_no_cluster_at_an_address(address):
    with pytest.raises(LockstepError, match=rf"--ray-address {address}: no Ray cluster \(.*\); start one there"):
        open_engine(1, address).start()


def test_a_port_where_something_else_answers():
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    with server.socket, pytest.raises(LockstepError, match=r"no Ray cluster \(something else answers\)"):
        open_engine(1, f"127.0.0.1:{server.server_port}").start()


@pytest.mark.parametrize("address", ["6379", "ray://here:10001", "http://here:1"])
def test_an_address_that_is_none(address):
    with pytest.raises(LockstepError, match="expected auto or HOST:PORT"):
        open_engine(1, address).start()


def test_a_cluster_that_the_environment_names_is_tried_as_well(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(LockstepError, match=r"--ray-address 127\.0\.0\.1:1: no Ray cluster"):
        open_engine(1, "auto").start()


def test_two_attempts_at_a_task_write_to_two_files(tmp_path):
    parts = {new_part(tmp_path / "shard.tfrecord") for _ in range(50)}
    assert len(parts) == 50
    assert {path.parent for path in parts} == {tmp_path}


def test_a_machine_that_does_not_see_the_folder_of_the_build(tmp_path):
    with pytest.raises(LockstepError, match=r"elsewhere: not seen from .*mount it there at the same path"):
        new_part(tmp_path / "elsewhere" / "audio-0")


def test_a_machine_that_does_not_see_the_corpus(tiny_corpus, tiny_config, tmp_path):
    """Its clips must not look like clips that cannot be read."""
    request = make_request(tiny_corpus, tmp_path / "cache", tiny_config, workers=0)
    clip = next(iter(request.clips))
    (tmp_path / "corpus").mkdir()
    seen_elsewhere = Found(clip, AudioFile(1000, 1))
    unmounted = type(request.front_end)(**{**vars(request.front_end), "roots": {clip.corpus: tmp_path / "corpus"}})
    with pytest.raises(LockstepError, match=r"tone-0000\.wav: gone, or not seen from "):
        scan_clip(seen_elsewhere, None, unmounted)


def test_a_machine_that_does_not_see_one_recording(tiny_corpus, tiny_config, tmp_path, in_process, monkeypatch):
    """The command looks itself: the clip must not count as one without audio."""
    find, host = scan_part.find_file, socket.gethostname()

    def find_most(clip, front_end):
        return Found(clip, None) if clip.id == "tone-0003" else find(clip, front_end)

    monkeypatch.setattr(scan_part, "find_file", find_most)
    in_process.spans_machines = True
    with pytest.raises(
        LockstepError, match=rf"tone-0003\.wav: not seen from {re.escape(host)}; mount the corpus there"
    ):
        build_cache(tiny_corpus, tmp_path / "cache", tiny_config, workers=0, progress=NullProgress(), pool=in_process)


@pytest.mark.parametrize(
    ("elsewhere", "change"), [(True, lambda data: data[:-1] + b"?"), (False, lambda data: data[:-1])]
)
def test_a_shard_that_did_not_arrive_whole(tiny_corpus, tiny_config, tmp_path, in_process, elsewhere, change):
    """Of another machine by its digest, of this one by its size."""

    def run(function, tasks):
        for result in map(function, tasks):
            if isinstance(result, ShardResult):
                result.path.write_bytes(change(result.path.read_bytes()))
            yield result

    in_process.spans_machines, in_process.run = elsewhere, run
    cache = tmp_path / "cache"
    with pytest.raises(LockstepError, match=r"\.tfrecord: not what a worker wrote, or not all of it; check the disk"):
        build_cache(tiny_corpus, cache, tiny_config, workers=0, progress=NullProgress(), pool=in_process)
    assert not (cache / "cache.json").exists()


def test_a_worker_on_another_machine_syncs_what_it_wrote(tiny_corpus, tiny_config, tmp_path, in_process, monkeypatch):
    synced, sync = set[str](), atomic_files.sync_file
    monkeypatch.setattr(atomic_files, "sync_file", lambda path: (synced.add(path.name), sync(path)))
    unsynced = set[str]()

    def run(function, tasks):
        for result in map(function, tasks):
            if isinstance(result, ShardResult):
                unsynced.update({result.path.name, result.path.with_suffix(".arrow").name} - synced)
            yield result

    in_process.spans_machines, in_process.run = True, run
    build_cache(tiny_corpus, tmp_path / "cache", tiny_config, workers=0, progress=NullProgress(), pool=in_process)
    assert not unsynced
    assert any(name.endswith("shard-00000-of-00001.arrow") for name in synced)


def test_a_machine_with_other_packages():
    versions = installed_versions()
    _prepare_process(tuple(versions.items()))
    with pytest.raises(LockstepError, match="expected numpy 1; install the same"):
        _prepare_process(tuple({**versions, "numpy": "1"}.items()))
