"""Fixtures of the corpus tests: one small corpus, written in any layout."""

from collections.abc import Callable
from pathlib import Path

import pytest
from layout_writers import CLIPS, SPEAKERS, WRITERS, Listed


@pytest.fixture(scope="module")
def tones(tone_corpus, tmp_path_factory) -> Path:
    return tone_corpus(tmp_path_factory.mktemp("tones") / "corpus", CLIPS)


@pytest.fixture(scope="module")
def clips(tones) -> Listed:
    """Each with more than three words, as sentences have."""
    rows = [line.split("|") for line in (tones / "metadata.csv").read_text().splitlines()]
    return [(row[0], SPEAKERS[number % 2], f"{' '.join(row[2].split())} a b c") for number, row in enumerate(rows)]


@pytest.fixture
def written(tones, clips, tmp_path) -> Callable[[str], Path]:
    """`written(layout)`: the folder of the corpus in this layout."""

    def write(name: str) -> Path:
        WRITERS[name](tones, tmp_path / name, clips)
        return tmp_path / name

    return write
