"""The project's commands and scripts as processes of their own, by the Python that runs the benchmark."""

import subprocess
import sys

_MODULES = {"precompute": "xtts.precompute.cli", "train": "xtts.trainer.cli"}


def command_line(stage: str, *arguments: object) -> list[str]:
    """What starts `xtts-STAGE ARGUMENTS`, wherever the scripts of this environment lie."""
    return [sys.executable, "-c", f"from {_MODULES[stage]} import main; main()", *map(str, arguments)]


def command(stage: str, *arguments: object, shown: bool = False) -> str:
    """What `xtts-STAGE ARGUMENTS` prints; where it fails, the benchmark ends with what it said.

    shown: it goes to our stderr as it comes, and nothing is given back.
    """
    return _run(command_line(stage, *arguments), shown=shown)


def script(*arguments: object, shown: bool = False) -> str:
    """What `python ARGUMENTS` prints, as `command` does."""
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
