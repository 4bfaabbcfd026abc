"""Runs the project's commands and scripts in separate processes, with the benchmark's Python, and reads their lines."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_BENCHMARKS = Path(__file__).parents[1]
_MODULES = {"precompute": "xtts.precompute.cli", "train": "xtts.trainer.cli", "synth": "xtts.trainer.synth_cli",
            "voice": "xtts.trainer.voice_cli"}


def command(stage: str, *arguments: object, shown: bool = False) -> str:
    """Output of `xtts-STAGE ARGUMENTS`; if it fails, the benchmark ends with its exit code.

    shown: stream the output to stderr, and return an empty text.
    """
    program = f"from {_MODULES[stage]} import main; main()"  # wherever this environment keeps its scripts
    return _run(["-c", program, *arguments], stdout=sys.stderr if shown else subprocess.PIPE)


def measured(*arguments: object) -> dict[str, Any]:
    """The figures that `python ARGUMENTS` prints at last, as JSON; it can import the folders of benchmarks/."""
    return dict(json.loads(_run(arguments, stdout=subprocess.PIPE).splitlines()[-1]))


def lines_of(run: Path, split: str = "train") -> list[dict[str, float]]:
    """Lines of metrics.jsonl: of every training step, or of every validation."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["split"] == split]


def _run(arguments: Iterable[object], *, stdout: Any) -> str:  # noqa: ANN401 - as subprocess takes it
    path = os.pathsep.join([str(_BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
    line = [sys.executable, *map(str, arguments)]
    done = subprocess.run(line, stdout=stdout, text=True, env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""
