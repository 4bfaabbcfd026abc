"""Builds of whole corpora by the command, timed: what the benchmarks of corpora have in common."""

import hashlib
import re
import statistics
import time
from pathlib import Path

from reporting.report import cpu_seconds

from setup.commands import command

Turn = tuple[float, float, int]
"""(seconds, processor seconds, MiB at most)."""
_MEMORY = re.compile(r"memory at most (\d+) MiB$")


def build(corpus: Path, cache: Path, workers: int) -> Turn:
    """(seconds, processor seconds, MiB at most) of a build from nothing."""
    began, spent = time.perf_counter(), cpu_seconds()
    printed = command("precompute", "build", "--data", corpus, "--cache", cache, "--workers", workers)
    seconds, spent = time.perf_counter() - began, cpu_seconds() - spent
    memory = _MEMORY.search(printed.rstrip())
    assert memory, printed
    return seconds, spent, int(memory[1])


def shard_digest(cache: Path) -> str:
    """Digest of all shards."""
    digest = hashlib.sha256()
    for path in sorted(cache.rglob("*.tfrecord")):
        digest.update(path.relative_to(cache).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def median(rounds: list[Turn], place: int) -> float:
    """Of one of the three figures of `build`."""
    return statistics.median(figures[place] for figures in rounds)


def table_row(name: str, clips: int, rounds: list[Turn]) -> dict[str, object]:
    """What is reported of a corpus."""
    seconds, spent = median(rounds, 0), median(rounds, 1)
    return {
        "clips as": name, "clips": clips, "seconds": round(seconds, 2), "clips per second": round(clips / seconds),
        "processor seconds": round(spent, 2), "clips per processor second": round(clips / spent),
        "memory at most, MiB": max(mib for _, _, mib in rounds),
    }  # fmt: skip
