"""An engine of stage 1 without processes: to start one takes longer than most builds of the tests."""

import pickle

import pytest

from xtts.precompute.workers import open_engine as engines
from xtts.precompute.workers.engine import call, pack
from xtts.precompute.workers.pool import WorkerPool


class InProcess:
    """Its workers are this process, so that a test sees what they read."""

    spans_machines = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def start(self):
        return None

    def run(self, function, tasks):
        return map(function, tasks)

    def finish(self):
        return None


class OneWorker(InProcess):
    """In the place of a pool of one process: functions and tasks are packed as for that."""

    def run(self, function, tasks):
        packed = pack(function)
        return (call(packed, pickle.loads(pickle.dumps(task))) for task in tasks)


@pytest.fixture(scope="session", autouse=True)
def builds_with_one_worker_stay_here():
    """A build with several workers, and one by a command in a process of its own, has real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "WorkerPool", lambda workers: OneWorker() if workers == 1 else WorkerPool(workers))
        yield


@pytest.fixture
def real_workers(monkeypatch):
    """One worker is a process in this test, too."""
    monkeypatch.setattr(engines, "WorkerPool", WorkerPool)
