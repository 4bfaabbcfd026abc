"""Where the files of a cache lie, whose names carry digests: for tests that read them or break them."""

from pathlib import Path

from xtts.shared.cache.cache_spec import load_spec


def index_path(cache: Path) -> Path:
    """The clip index."""
    return cache / load_spec(cache).index_file


def tokenizer_path(cache: Path) -> Path:
    """The tokenizer."""
    return cache / load_spec(cache).tokenizer_file
