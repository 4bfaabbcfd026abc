"""A cache of spoken clips, and runs of `xtts-train` with what they record."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from setup.commands import command, command_line

_POLL_SECONDS = 0.02
_LONGEST_START_SECONDS = 1800.0


def spoken_cache(work: Path, clips: int, *words: object) -> Path:
    """The cache of a corpus by `xtts-precompute sample-corpus`; both are left as they are where they are complete."""
    corpus, cache = (work / f"{name}-{clips}" for name in ("corpus", "features"))
    command("precompute", "sample-corpus", corpus, "--clips", clips, "--seed", 0, shown=True)
    command("precompute", "build", "--data", corpus, "--cache", cache, *words, shown=True)
    return cache


def lines_of(run: Path, split: str = "train") -> list[dict[str, float]]:
    """Lines of metrics.jsonl: of every training step, or of every validation."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["split"] == split]


@contextmanager
def started(run: Path, *words: object) -> Iterator[tuple[Popen[str], float]]:
    """`xtts-train --out RUN WORDS` that has made its first step, and after how many seconds; waits for its end."""
    line, metrics = command_line("train", "--out", run, *words), run / "metrics.jsonl"
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as screen:
        process = Popen(line, stdout=screen, stderr=screen, text=True)
        try:
            while process.poll() is None and not (metrics.is_file() and metrics.stat().st_size):
                time.sleep(_POLL_SECONDS)
                if time.perf_counter() - began > _LONGEST_START_SECONDS:
                    sys.exit(f"no step after {_LONGEST_START_SECONDS:.0f} s: {' '.join(line)}")
            yield process, time.perf_counter() - began
            process.wait()
        finally:
            process.kill()
        screen.seek(0)
        if process.returncode or not metrics.is_file():
            sys.exit(f"{' '.join(line)} failed:\n{screen.read()}")
