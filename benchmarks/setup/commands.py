"""Runs the project's commands and scripts in separate processes, with the benchmark's Python."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_BENCHMARKS = Path(__file__).parents[1]
_MODULES = {"precompute": "xtts.precompute.cli", "train": "xtts.trainer.cli", "synth": "xtts.trainer.synth_cli",
            "voice": "xtts.trainer.voice_cli"}


def command_line(stage: str, *arguments: object) -> list[str]:
    """The command line of `xtts-STAGE ARGUMENTS`, wherever this environment keeps its scripts."""
    return [sys.executable, "-c", f"from {_MODULES[stage]} import main; main()", *map(str, arguments)]


def command(stage: str, *arguments: object, shown: bool = False) -> str:
    """Output of `xtts-STAGE ARGUMENTS`; if it fails, the benchmark ends with its exit code.

    shown: stream the output to stderr, and return an empty text.
    """
    return _run(command_line(stage, *arguments), stdout=sys.stderr if shown else subprocess.PIPE)


def script(*arguments: object) -> str:
    """Output of `python ARGUMENTS`, as in `command`; it can import the folders of benchmarks/."""
    return _run([sys.executable, *map(str, arguments)], stdout=subprocess.PIPE)


def measured(*arguments: object) -> dict[str, Any]:
    """The figures that `python ARGUMENTS` prints at last, as JSON."""
    return dict(json.loads(script(*arguments).splitlines()[-1]))


def _run(line: list[str], *, stdout: Any) -> str:  # noqa: ANN401 - as subprocess takes it
    path = os.pathsep.join([str(_BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(line, stdout=stdout, text=True, env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""
