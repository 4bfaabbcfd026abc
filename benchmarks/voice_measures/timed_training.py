"""Training for a number of minutes: a short run tells how many steps they hold, and the schedule ends at the last."""

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from setup.commands import command

_SPARE = 0.95
"""Share of the minutes that is planned: the rest is for validation, checkpoints and a machine that is not even."""
_MARKS = 4
"""How often a run validates and saves."""


def train_for(
    minutes: float, cache: Path, run: Path, config: str, settings: Sequence[str], *, tried_steps: int
) -> dict[str, float]:
    """Train in `run` once, however often this is called: `steps`, `training_minutes` in all, `step_seconds`.

    settings: `section.key=value` beside the configuration; tried_steps: those of the short run, in `run`-tried.
    """
    done = run.with_name(f"{run.name}.json")
    if not done.is_file():
        tried = run.with_name(f"{run.name}-tried")
        spent = _train(cache, tried, config, settings, tried_steps)
        seconds = _step_seconds(tried)
        start = max(spent - float(seconds.sum()), 0.0)
        steady = float(np.mean(seconds[len(seconds) // 2 :]))
        steps = max(int(_SPARE * (60 * minutes - start) / steady), tried_steps)
        spent = _train(cache, run, config, settings, steps)
        mean = float(np.mean(_step_seconds(run)))
        figures = {"steps": steps, "training_minutes": round(spent / 60, 1), "step_seconds": round(mean, 4)}
        done.write_text(json.dumps(figures) + "\n", encoding="utf-8")
    found: dict[str, float] = json.loads(done.read_text(encoding="utf-8"))
    return found


def _train(cache: Path, run: Path, config: str, settings: Sequence[str], steps: int) -> float:
    """Wall seconds of a run from its start to its end; what is left of an interrupted one goes."""
    shutil.rmtree(run, ignore_errors=True)
    every = -(-steps // _MARKS)
    marks = [f"training.{mark}={every}" for mark in ("validate_every", "checkpoint_every")]
    assignments = [*settings, f"training.steps={steps}", *marks, "training.samples_every=null"]
    given = [part for assignment in assignments for part in ("--set", assignment)]
    began = time.perf_counter()
    command("train", "--config", config, "--cache", cache, "--out", run, *given, shown=True)
    return time.perf_counter() - began


def _step_seconds(run: Path) -> np.ndarray:
    """Seconds of every step, float64[N]."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return np.array([row["step_seconds"] for row in rows if row.get("split") == "train"])
