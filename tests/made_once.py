"""Folders that the processes of the tests make once and share."""

import fcntl
from contextlib import contextmanager


@contextmanager
def made_once(tmp_path_factory, worker_id, name):
    """A folder that all processes of the tests share, and whether it is empty: others wait while one fills it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / name
    folder.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, not any(folder.iterdir())
