"""Builds of whole corpora by the command, timed: what the benchmarks of corpora have in common."""

import hashlib
import re
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from reporting.report import cpu_seconds

from setup.commands import command

Corpora = dict[str, Path]
"""What a corpus is called in the report, and where it lies."""
Turn = tuple[float, float, int]
"""(seconds, processor seconds, MiB at most)."""
Turns = dict[str, list[Turn]]
_MEMORY = re.compile(r"memory at most (\d+) MiB$")


def in_another_process(function: Callable[..., Corpora], *arguments: object) -> Corpora:
    """What a function returns that writes corpora: a command would count this process' peak memory as its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def build_in_turn(corpora: Corpora, cache: Path, *, rounds: int, workers: int) -> tuple[Turns, dict[str, str]]:
    """Build each corpus from nothing, one after another, in every round: its turns, and the digest of its shards."""
    turns: Turns = {name: [] for name in corpora}
    digests = {}
    for _ in range(rounds):
        for name, corpus in corpora.items():
            shutil.rmtree(cache, ignore_errors=True)
            turns[name].append(build(corpus, cache, workers))
            digests[name] = shard_digest(cache)
    shutil.rmtree(cache)
    return turns, digests


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
