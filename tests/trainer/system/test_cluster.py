"""TF_CONFIG: what it says, and what is refused."""

import json

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.system.cluster import find_cluster

WORKERS = ["10.0.0.1:2222", "10.0.0.2:2222"]
TASK = {"type": "worker", "index": 1}


def environment(cluster, task=TASK):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


@pytest.mark.parametrize("strategy", ["auto", "multiworker"])
def test_several_workers_are_a_cluster(strategy):
    cluster = find_cluster(strategy, environment({"worker": WORKERS}))
    assert cluster.addresses == tuple(WORKERS)
    assert (cluster.index, cluster.chief, cluster.name) == (1, False, "worker 1 of 2")
    assert find_cluster(strategy, environment({"worker": WORKERS}, {"type": "worker", "index": 0})).chief


def test_who_trains_alone_has_no_cluster():
    one = environment({"worker": WORKERS[:1]}, {"type": "worker", "index": 0})
    assert find_cluster("single", environment({"worker": WORKERS})) is None
    assert find_cluster("mirrored", environment({"worker": WORKERS})) is None
    assert find_cluster("auto", {}) is None
    assert find_cluster("auto", one) is None
    assert find_cluster("multiworker", one) is None


def test_multiworker_needs_tf_config():
    with pytest.raises(LockstepError, match=r"training.strategy: multiworker, but TF_CONFIG is not set, expected \{"):
        find_cluster("multiworker", {})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "not JSON"),
        ('{"cluster": {"worker": []}}', "no `cluster` or no `task`"),
        (environment({"worker": []})["TF_CONFIG"], "worker addresses []"),
        (environment({"worker": WORKERS, "ps": ["10.0.0.3:1"]})["TF_CONFIG"], "jobs ps, worker, task of type worker"),
        (environment({"worker": WORKERS}, {"type": "chief", "index": 0})["TF_CONFIG"], "task of type chief"),
        (environment({"worker": WORKERS}, {"type": "worker", "index": 2})["TF_CONFIG"], "task index 2 of 2 workers"),
        (environment({"worker": WORKERS}, {"type": "worker", "index": "1"})["TF_CONFIG"], 'task index "1" of 2'),
        (environment({"worker": WORKERS[:1] * 2})["TF_CONFIG"], "a worker address twice"),
        (environment({"worker": ["10.0.0.1", "10.0.0.2:2"]})["TF_CONFIG"], 'worker addresses ["10.0.0.1"'),
    ],
)
def test_a_malformed_tf_config_is_refused(text, found):
    for strategy in ("auto", "multiworker"):
        with pytest.raises(LockstepError, match=r"^TF_CONFIG: ") as raised:
            find_cluster(strategy, {"TF_CONFIG": text})
        assert found in raised.value.found
