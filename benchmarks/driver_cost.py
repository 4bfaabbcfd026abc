"""What the command of a build itself spends on each clip: processor time and memory, whatever its workers do.

    python benchmarks/driver_cost.py [--clips 100000 200000] [--shard-mb 256] [--work DIR] [--out FILE.json]

A corpus of texts without audio is built twice at each of two sizes, each time in a process of its own: listing, scan,
plan, tasks, shards, index and commit are those of every build, with one local worker. Only what reads or decodes audio
is replaced, in the worker: it says that each file is there, and writes records of one byte. So nearly all that the
command does is left, and a clip's cost is the difference of the two sizes, divided by their distance.

Processor time is that of the command's process alone, user and system. A shard costs too, since its files are synced,
moved and read: they are of the size that a very large corpus needs, about two thousand clips. Memory is the most that
Python, numpy (tracemalloc) and Arrow held at once, in a second build, which is slower.
"""

import argparse
import resource
import shutil
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reporting.report import machine, table_lines, write_json

GATES = {"microseconds": 10.0, "bytes": 80.0}
"""Of a clip, at most."""
SETTINGS = {"shapes.buckets": 1, "split.validation_fraction": 0.02}
SHARD_MB = 256


class _Record:
    """A record of one byte."""

    audio = None

    def to_example(self) -> bytes:
        return b"x"


def without_audio(function: Callable[[Any], Any], task: object) -> object:
    """Do a task of a build without reading any audio (runs in a worker)."""
    from xtts.precompute.features import extract, scan_part
    from xtts.precompute.features.scan import Findings, Found
    from xtts.shared.cache.clip_index import Audio, AudioFile, Clip, TokenCount

    def find_file(clip: Clip, _: object) -> Found:
        return Found(clip, AudioFile(100_000, 10**18))

    def scan_clip(found: Found, *_: object) -> Findings:
        number = int(found.clip.id.removeprefix("clip-"))
        audio = Audio(100 + number * 37 % 800, 1.0 + number % 9, "")
        return Findings(file=found.file, tokens=TokenCount(10 + number % 60, ""), audio=audio)

    scan_part.find_file, scan_part.scan_clip = find_file, scan_clip
    extract.prove_canary = lambda _: None
    extract._features = lambda row, *_: (_Record(), "0" * 64, (float(row.audio.mel_length), 1.0), None)
    return function(task)


def write_corpus(folder: Path, clips: int) -> Path:
    """A corpus of texts alone."""
    folder.mkdir(parents=True)
    lines = (f"clip-{number:09d}|some words, {number % 1000} of them" for number in range(clips))
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def drive(folder: Path, clips: int, shard_mb: int, trace: bool) -> tuple[float, int, int]:
    """(processor seconds, bytes held at once, resident bytes) of the command of a build of so many clips."""
    import pyarrow as pa

    from xtts.precompute.build.build_cache import build_cache
    from xtts.precompute.workers.pool import WorkerPool
    from xtts.precompute.workers.progress import NullProgress
    from xtts.shared.config_files import load_config

    class Engine(WorkerPool):
        def run(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
            return super().run(partial(without_audio, function), tasks)

    corpus = write_corpus(folder / "corpus", clips)
    config = load_config("normal", flags={**SETTINGS, "shards.shard_mb": shard_mb})
    if trace:
        tracemalloc.start()
    began = time.process_time()
    report = build_cache(corpus, folder / "cache", config, workers=1, progress=NullProgress(), pool=Engine(1))
    seconds = time.process_time() - began
    assert report.spec.statistics.clips == clips
    held = tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().max_memory() if trace else 0
    return seconds, held, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2 ** (10 * (sys.platform != "darwin"))


def measure(work: Path | None, clips: int, shard_mb: int, *, trace: bool) -> tuple[float, int, int]:
    """What `drive` gives, in a process of its own."""
    with TemporaryDirectory(dir=work) as folder, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(drive, Path(folder), clips, shard_mb, trace).result()
        finally:
            shutil.rmtree(Path(folder) / "cache", ignore_errors=True)


def memory_slope(work: Path | None, few: int, many: int, shard_mb: int = SHARD_MB) -> float:
    """Bytes that the command holds for each clip more."""
    (_, small, _), (_, large, _) = (measure(work, clips, shard_mb, trace=True) for clips in (few, many))
    return (large - small) / (many - few)


def main() -> None:
    options = parse_arguments()
    few, many = sorted(options.clips)
    turns = {clips: measure(options.work, clips, options.shard_mb, trace=False) for clips in (few, many)}
    microseconds = 1e6 * (turns[many][0] - turns[few][0]) / (many - few)
    figures = {
        "title": "what the command of a build spends on a clip",
        "microseconds": round(microseconds, 2),
        "bytes": round(memory_slope(options.work, few, many, options.shard_mb), 1),
        "gates": GATES,
        "shard_mb": options.shard_mb,
        "table": [
            {"clips": clips, "processor seconds": round(turn[0], 2), "resident MiB": round(turn[2] / 2**20)}
            for clips, turn in turns.items()
        ],
        **machine(("lockstep-tts", "numpy", "pyarrow")),
    }
    print("\n".join(cost_lines(figures)))
    if options.out:
        write_json(options.out, figures)


def cost_lines(figures: dict[str, Any]) -> list[str]:
    """The report."""
    verdicts = [
        f"{figures[unit]:.1f} {unit} a clip, at most {most:g}: {'kept' if figures[unit] <= most else 'BROKEN'}"
        for unit, most in GATES.items()
    ]
    return [*verdicts, "", *table_lines(figures["table"])]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, nargs=2, default=[100_000, 200_000], help="two sizes")
    parser.add_argument("--shard-mb", type=int, default=SHARD_MB, help="size of the shards")
    parser.add_argument("--work", type=Path, help="folder for the corpora and caches (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
