"""TF_CONFIG: its contents, and what is refused. Workers that wait for each other."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from device_programs import free_ports
from tables import cases

from xtts.shared.errors import LockstepError
from xtts.trainer.loop.rendezvous import Cluster, find_cluster, wait_for_workers

CASES = cases(__file__)

WORKERS = ["10.0.0.1:2222", "10.0.0.2:2222"]
TASK = {"type": "worker", "index": 1}


def environment(cluster, task=TASK):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


@pytest.mark.parametrize("strategy", ["auto", "multiworker"])
def test_several_workers_are_a_cluster(strategy):
    cluster = find_cluster(strategy, environment({"worker": WORKERS}))
    assert cluster.addresses == tuple(WORKERS)
    assert (cluster.index, cluster.name) == (1, "worker 1 of 2")
    assert find_cluster(strategy, environment({"worker": WORKERS}, {"type": "worker", "index": 0})).index == 0


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


@pytest.mark.parametrize(("text", "found"), CASES["malformed"])
def test_a_malformed_tf_config_is_refused(text, found):
    for strategy in ("auto", "multiworker"):
        with pytest.raises(LockstepError, match=r"^TF_CONFIG: ") as raised:
            find_cluster(strategy, {"TF_CONFIG": text})
        assert found in raised.value.found


def workers(ports, index):
    return Cluster(addresses=tuple(f"127.0.0.1:{port}" for port in ports), index=index)


def test_workers_that_start_one_after_another_meet():
    ports = free_ports(2)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(wait_for_workers, workers(ports, 0))
        while not first.done():
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", ports[0])).close()
                break
            time.sleep(0.01)
        assert not first.done()
        wait_for_workers(workers(ports, 1))
        with socket.create_server(("127.0.0.1", ports[1])):  # as TensorFlow does: the port is free again
            first.result()


def test_workers_that_are_missing_are_named():
    ports = free_ports(3)
    with socket.create_server(("127.0.0.1", ports[2])), pytest.raises(LockstepError) as raised:
        wait_for_workers(workers(ports, 1), seconds=0.5)
    assert raised.value.location == "worker 1 of 3"
    assert raised.value.found == f"waited 0 s without worker 0 (127.0.0.1:{ports[0]})"
    assert raised.value.exit_code == 1

    nowhere = Cluster(addresses=(f"127.0.0.1:{ports[0]}", "no-such-host.invalid:2222"), index=0)
    with pytest.raises(LockstepError, match=r"without worker 1 \(no-such-host.invalid:2222\)"):
        wait_for_workers(nowhere, seconds=0.1)


def test_a_port_that_is_taken_is_refused():
    ports = free_ports(2)
    with (
        socket.create_server(("", ports[0])),
        pytest.raises(LockstepError, match=f"cannot listen at port {ports[0]}: "),
    ):
        wait_for_workers(workers(ports, 0), seconds=5)
