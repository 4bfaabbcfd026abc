"""Runs the project's commands and scripts in separate processes, with the benchmark's Python."""

import subprocess
import sys

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
    """Output of `python ARGUMENTS`, as in `command`."""
    return _run([sys.executable, *map(str, arguments)], shown=shown)


def _run(line: list[str], *, shown: bool) -> str:
    if shown:
        code = subprocess.run(line, stdout=sys.stderr).returncode
        if code:
            sys.exit(code)
        return ""
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(line)} failed:\n{done.stderr}")
    return done.stdout
