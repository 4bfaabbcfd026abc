"""Runs the project's commands and scripts in separate processes, with the benchmark's Python."""

import os
import subprocess
import sys
from pathlib import Path

_BENCHMARKS = Path(__file__).parents[1]
_MODULES = {"precompute": "xtts.precompute.cli", "train": "xtts.trainer.cli", "synth": "xtts.trainer.serve.cli"}


def command_line(stage: str, *arguments: object) -> list[str]:
    """The command line of `xtts-STAGE ARGUMENTS`, wherever this environment keeps its scripts."""
    return [sys.executable, "-c", f"from {_MODULES[stage]} import main; main()", *map(str, arguments)]


def command(stage: str, *arguments: object, shown: bool = False) -> str:
    """Output of `xtts-STAGE ARGUMENTS`; if it fails, the benchmark exits with its error.

    shown: stream the output to stderr, and return an empty text.
    """
    return _run(command_line(stage, *arguments), shown=shown)


def script(*arguments: object, shown: bool = False) -> str:
    """Output of `python ARGUMENTS`, as in `command`; it can import the folders of benchmarks/."""
    return _run([sys.executable, *map(str, arguments)], shown=shown)


def _run(line: list[str], *, shown: bool) -> str:
    path = os.pathsep.join([str(_BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    if shown:
        code = subprocess.run(line, stdout=sys.stderr, env=environment).returncode
        if code:
            sys.exit(code)
        return ""
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(line)} failed:\n{done.stderr}")
    return done.stdout
