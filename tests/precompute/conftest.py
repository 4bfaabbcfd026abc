"""Fixtures of the tests of stage 1."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def workspace(tiny_corpus: Path, tiny_cache: Path, tmp_path: Path) -> Path:
    """A folder with copies of the small corpus and its cache, times included."""
    shutil.copytree(tiny_corpus, tmp_path / "corpus")
    shutil.copytree(tiny_cache, tmp_path / "cache")
    return tmp_path


@pytest.fixture
def cache(workspace: Path) -> Path:
    """A copy of the small cache that a test may break."""
    return workspace / "cache"
