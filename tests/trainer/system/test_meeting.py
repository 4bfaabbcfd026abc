"""Workers that wait for each other: all there, one missing, a port that is taken."""

import socket
import threading
import time

import pytest
from device_programs import free_ports

from xtts.shared.errors import LockstepError
from xtts.trainer.system.cluster import Cluster
from xtts.trainer.system.meeting import wait_for_workers


def cluster(ports, index):
    return Cluster(addresses=tuple(f"127.0.0.1:{port}" for port in ports), index=index)


def test_workers_that_start_one_after_another_meet():
    ports, met = free_ports(3), []

    def start(index):
        time.sleep(0.3 * index)
        wait_for_workers(cluster(ports, index), seconds=30)
        met.append(index)
        with socket.create_server(("127.0.0.1", ports[index])):  # as TensorFlow does: the port is free again
            time.sleep(2)

    workers = [threading.Thread(target=start, args=(index,)) for index in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(met) == [0, 1, 2]


def test_workers_that_are_missing_are_named():
    ports = free_ports(3)
    with socket.create_server(("127.0.0.1", ports[2])), pytest.raises(LockstepError) as raised:
        wait_for_workers(cluster(ports, 1), seconds=0.5)
    assert raised.value.where == "worker 1 of 3"
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
        wait_for_workers(cluster(ports, 0), seconds=5)
