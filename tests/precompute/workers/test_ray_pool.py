"""Stage 1 on a Ray cluster of two nodes, of which one dies.

`LOCKSTEP_RAY_CLIPS=2000 pytest tests/precompute/workers/test_ray_pool.py` loses a node in a build of 2,000 clips.
"""

import importlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from operator import add
from pathlib import Path

import pytest
from builds import build, children, start, tree, wait_for

from xtts.precompute.workers.arithmetic import installed_versions
from xtts.precompute.workers.disks import attempt_path
from xtts.precompute.workers.open_pool import open_pool
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.config import Config
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
pytestmark = pytest.mark.long
ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

CLIPS = int(os.environ.get("LOCKSTEP_RAY_CLIPS", "120"))
SETTINGS = {"shapes.buckets": 4, "split.validation_fraction": 0.2, "text.tokenizer": "characters"}
NODE = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """One node for all tests; this process is connected to it, so that they share its workers."""
    made = cluster_utils.Cluster(initialize_head=True, head_node_args=NODE)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", made.address)
        yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config("tiny", flags=SETTINGS)


@pytest.fixture(scope="module")
def corpus(tone_corpus, tmp_path_factory) -> Path:
    return tone_corpus(tmp_path_factory.mktemp("ray") / "corpus", CLIPS, seconds=(1.0, 3.0), seed=5)


@pytest.fixture(scope="module")
def whole(corpus, config, tmp_path_factory) -> Path:
    """The cache that one process of this machine builds."""
    cache = tmp_path_factory.mktemp("local") / "cache"
    build(corpus, cache, config)
    return cache


class NodeLost(Progress):
    """Kills a node while it is writing a shard, once the first shard is done."""

    def __init__(self, cluster: object, cache: Path) -> None:
        self.cluster, self.cache, self.stage = cluster, cache, ""
        self.doomed: object | None = cluster.add_node(**NODE)
        self.lost: set[str] = set()
        self.caught = 0

    def start(self, stage: str, clips: int) -> None:
        self.stage = stage

    def advance(self, clips: int, seconds: float) -> None:
        if self.stage == "features" and self.doomed is not None:
            wait_for(self.caught_writing)
            self.cluster.remove_node(self.doomed, allow_graceful=False)
            os.kill(self.caught, signal.SIGKILL)
            self.doomed = None
        written = (self.cache / ".building" / "scratch").glob("*/*.tfrecord")
        self.lost = {path.name for path in written}  # at the end: attempts whose shard came of another

    def caught_writing(self) -> bool:
        """Whether a worker of the node has a part open; it is halted there."""
        raylet = self.doomed.all_processes["raylet"][0].process.pid
        for pid in filter(has_part_open, children(raylet)):
            os.kill(pid, signal.SIGSTOP)
            if has_part_open(pid):
                self.caught = pid
                return True
            os.kill(pid, signal.SIGCONT)
        return False


def has_part_open(pid: int) -> bool:
    for path in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            if os.readlink(path).endswith(".tfrecord"):
                return True
    return False


def test_a_build_survives_the_loss_of_a_node(cluster, corpus, config, whole, tmp_path):
    progress = NodeLost(cluster, tmp_path / "cache")
    wait_for(lambda: ray.cluster_resources()["CPU"] == 2)
    report = build(corpus, tmp_path / "cache", config, engine="ray", progress=progress)
    assert tree(tmp_path / "cache") == tree(whole)
    assert progress.doomed is None
    assert progress.lost, "the node was not writing when it died"
    assert report.peak_bytes == 0


def test_results_and_errors_come_from_the_cluster(cluster, tmp_path):
    with open_pool(1, "ray") as pool:
        assert sorted(pool.run(partial(add, 1), range(20))) == list(range(1, 21))
        with pytest.raises(LockstepError, match="elsewhere: not visible from"):
            list(pool.run(attempt_path, [tmp_path / "elsewhere" / "part"]))
        with pytest.raises(OSError, match="No such file"):
            list(pool.run(os.stat, [str(tmp_path / "nothing")]))


def test_a_machine_with_other_packages_is_rejected(cluster, monkeypatch):
    here = {**installed_versions(), "numpy": "1"}
    monkeypatch.setattr("xtts.precompute.workers.ray_pool.installed_versions", lambda: here)
    with pytest.raises(LockstepError, match="expected numpy 1; install the same"), open_pool(1, "ray") as pool:
        list(pool.run(os.getenv, ["HOME"]))


def test_a_task_that_always_dies_is_a_one_line_error(cluster):
    with open_pool(1, "ray") as pool, pytest.raises(LockstepError, match="a task failed for good"):
        list(pool.run(os._exit, [1]))


def test_a_machine_without_lockstep_is_a_one_line_error(cluster, tmp_path, monkeypatch):
    (tmp_path / "not_on_the_cluster.py").write_text("def run(packed, task, versions):\n    return packed\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    run = importlib.import_module("not_on_the_cluster").run
    monkeypatch.setattr("xtts.precompute.workers.ray_pool.run_packed", run)
    with open_pool(1, "ray") as pool, pytest.raises(LockstepError, match="lacks lockstep-tts") as caught:
        list(pool.run(os.getenv, ["HOME"]))
    assert str(caught.value).startswith(f"the Ray cluster at {cluster.address}: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_build_on_ray_is_continued_locally(cluster, corpus, whole, tmp_path, number):
    cache = tmp_path / "cache"
    process = start(corpus, cache, SETTINGS, "--workers=1", "--engine=ray")
    wait_for(lambda: any((cache / ".building").glob("*/bucket-*/*.arrow")))
    process.send_signal(number)
    _, errors = process.communicate()
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert f"stopped by {number.name}; run the same command again to continue" in errors.splitlines()[-1]
    assert not (cache / "cache.json").exists()
    again = start(corpus, cache, SETTINGS, "--workers=1")
    _, said = again.communicate()
    assert again.returncode == 0, said
    assert "of an interrupted build" in said
    assert tree(cache) == tree(whole)
    time.sleep(0.5)
    assert not (cache / ".building").exists(), "a task of the stopped build wrote into the new one"


def test_an_own_cluster_is_silent_and_ends_with_the_build(corpus, whole, tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    process = start(corpus, tmp_path / "cache", SETTINGS, "--workers=1", "--engine=ray")
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert tree(tmp_path / "cache") == tree(whole)
    said = [line for line in errors.splitlines() if not line.startswith(("scan: ", "features: "))]
    assert len(said) == 1  # nothing of Ray's
    assert "memory not known" in output
