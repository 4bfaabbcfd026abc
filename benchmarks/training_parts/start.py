"""Section (f): seconds from `xtts-train` to its first step, with XLA's compilation cache empty and filled."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setup.commands import command_line

from training_parts.steps import StepBench
from xtts.shared.config_files import dump_config

_POLL_SECONDS = 0.02
_LONGEST_START_SECONDS = 1800.0


def cold_and_warm(bench: StepBench) -> dict[str, object]:
    """(f) Two runs of one step each in separate processes; only the first compiles."""
    number = max(bench.options.buckets) if bench.options.start_shapes is None else bench.options.start_shapes
    cache, config = bench.cache(number), bench.config(number)
    file = bench.options.work / f"config-{number}.yaml"
    file.write_text(dump_config(config), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="lockstep-start-") as folder:
        cold, warm = (seconds_to_first_step(Path(folder), name, file, cache) for name in ("cold", "warm"))
    return {
        "title": f"start of a run, {number} shape{'s' * (number > 1)}: seconds to the first step",
        "times_faster_warm": cold / warm,
        "table": [{"start": "cold", "seconds": cold}, {"start": "warm", "seconds": warm}],
    }


def seconds_to_first_step(folder: Path, name: str, config: Path, cache: Path) -> float:
    """Seconds from the start of the command until metrics.jsonl has step 1."""
    metrics = folder / name / "metrics.jsonl"
    command = command_line("train", "--steps", 1, "--config", config, "--cache", cache, "--out", folder / name)
    environment = {k: v for k, v in os.environ.items() if k != "TF_XLA_FLAGS"} | {"XDG_CACHE_HOME": str(folder)}
    began = time.perf_counter()
    with (folder / "screen").open("w+") as screen:
        process = subprocess.Popen(command, env=environment, stdout=screen, stderr=screen)
        try:
            while process.poll() is None and not _first_step_done(metrics):
                time.sleep(_POLL_SECONDS)
                if time.perf_counter() - began > _LONGEST_START_SECONDS:
                    sys.exit(f"no step after {_LONGEST_START_SECONDS:.0f} s: {' '.join(command)}")
            seconds = time.perf_counter() - began
            process.wait()
        finally:
            process.kill()
        screen.seek(0)
        if process.returncode or not _first_step_done(metrics):
            sys.exit(f"{' '.join(command)} failed:\n{screen.read()}")
    return seconds


def _first_step_done(metrics: Path) -> bool:
    return metrics.is_file() and metrics.stat().st_size > 0
