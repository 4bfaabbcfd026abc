"""Builds in this process (`workers=0`), and what is in a cache after them: for the tests of stage 1."""

import time
from collections.abc import Callable
from pathlib import Path

from cache_files import index_path

from xtts.precompute.build.build_cache import BuildReport, build_cache
from xtts.precompute.check.verify import Finding
from xtts.precompute.check.verify_command import VerifyRequest, find_problems
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import SPLITS, load_spec
from xtts.shared.cache.clip_index import IndexRow, read_index
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.config import Config


class Listener(NullProgress):
    """Remembers what was said, and how many clips each stage had."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stages: dict[str, int] = {}

    def say(self, text: str) -> None:
        self.lines.append(text)

    def start(self, stage: str, clips: int, seconds: float) -> None:
        self.stages[stage] = clips


def build(data: object, cache: object, config: Config, **options: object) -> BuildReport:
    """`build_cache` without processes, silently."""
    return build_cache(data, cache, config, **{"workers": 0, "progress": NullProgress(), **options})


def problems(cache: Path, data: object = None, **options: object) -> list[Finding]:
    """What `verify` finds, or leaves after a repair."""
    request = {"deep": None, "repair": False, "workers": 0, **options}
    return find_problems(VerifyRequest(cache=cache, against=data, **request), NullProgress())


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below to its content."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def shards(cache: Path) -> dict[str, tuple[bytes, int]]:
    """Every shard to its content and the time at which it was written."""
    files = cache.rglob("*.tfrecord")
    return {path.relative_to(cache).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def rows(cache: Path) -> dict[str, IndexRow]:
    """The index: id to row."""
    return {row.clip.id: row for row in read_index(index_path(cache))}


def records(cache: Path) -> dict[str, tuple]:
    """Clip id to (record, bucket, split)."""
    spec = load_spec(cache)
    return {
        record.clip_id: (record, bucket, split)
        for bucket in spec.buckets
        for split in SPLITS
        for shard in bucket.shards(split)
        for _, record in read_shard(cache / shard.file, spec, bucket)
    }


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Turn one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as it holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
