"""Fixtures of the tests of stage 1."""

import shutil
from pathlib import Path

import pytest


class InProcess:
    """An engine whose workers are this process, so that a test sees what they read."""

    spans_machines = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def run(self, function, tasks):
        return map(function, tasks)

    def finish(self):
        return None


@pytest.fixture
def in_process() -> InProcess:
    """A pool that runs its tasks where the test is."""
    return InProcess()


@pytest.fixture
def place(tiny_corpus: Path, tiny_cache: Path, tmp_path: Path) -> Path:
    """A folder with copies of the small corpus and its cache, times included."""
    shutil.copytree(tiny_corpus, tmp_path / "corpus")
    shutil.copytree(tiny_cache, tmp_path / "cache")
    return tmp_path
