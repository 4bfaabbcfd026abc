"""Training as a process of its own, `xtts-voice`: it outlives page and server, and is known by its log and its run."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from statistics import median
from typing import Any

import yaml

_TAIL_BYTES = 2**16
_STEPS = 50
"""Steps by which the time left is estimated."""


@dataclass(frozen=True, kw_only=True)
class Making:
    """The state of a voice in the making."""

    running: bool
    phase: str
    """One of: none, checking, preparing, training, finishing, done, stopped, failed."""
    step: int = 0
    steps: int = 0
    seconds_left: float | None = None
    """Of training alone; None where it is unknown."""
    error: str = ""


class VoiceMaker:
    """Starts and stops `xtts-voice` for a folder of takes, in which its cache, its run and its log lie."""

    def __init__(self, folder: Path, language: str, options: Sequence[str]) -> None:
        """options: further ones of `xtts-voice`."""
        self.folder, self.run, self._log = folder, folder / "run", folder / "voice.log"
        of_folder = ("--cache", str(folder / "features"), "--out", str(self.run))
        module = (sys.executable, "-m", "xtts.trainer.voice_cli")
        self._command = [*module, str(folder), "--language", language, *of_folder, *options]

    @property
    def voice(self) -> Path | None:
        """The folder of the voice that was made last; None before the first."""
        voice = self.run / "voice"
        return voice if (voice / "voice.json").is_file() else None

    def start(self) -> None:
        """Start, or go on; nothing while it runs."""
        with open(self._log, "a+b") as log:
            if not _lock(log):
                return
            log.truncate(0)
            # The log's lock passes on to the process, which writes its number first: whoever cannot lock it knows both.
            subprocess.Popen(
                ["sh", "-c", 'echo $$; exec "$@"', "sh", *self._command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )

    def stop(self) -> None:
        """Ask it to save and stop."""
        if self._is_running():
            with suppress(ProcessLookupError, IndexError, ValueError):
                os.kill(int(self._lines()[0]), signal.SIGTERM)

    def state(self) -> Making:
        """Read the state from log and run."""
        running, lines = self._is_running(), self._lines()
        if not running:
            return _ended(lines)
        if not any(line.startswith("starting TensorFlow") for line in lines):
            return Making(running=True, phase="checking")
        rows, steps = self._rows(), self._steps()
        if not rows or not steps:
            return Making(running=True, phase="preparing", steps=steps)
        step = int(rows[-1]["step"])
        left = (steps - step) * median(row["step_seconds"] for row in rows[-_STEPS:])
        return Making(
            running=True, phase="training" if step < steps else "finishing", step=step, steps=steps, seconds_left=left
        )

    def _is_running(self) -> bool:
        try:
            with open(self._log, "r+b") as log:
                return not _lock(log)
        except FileNotFoundError:
            return False

    def _lines(self) -> list[str]:
        with suppress(FileNotFoundError):
            return self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return []

    def _rows(self) -> list[dict[str, Any]]:
        """Return the newest training steps of `metrics.jsonl`."""
        rows = list[dict[str, Any]]()
        with suppress(FileNotFoundError), open(self.run / "metrics.jsonl", "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - _TAIL_BYTES))
            for line in file.read().decode(errors="replace").splitlines():
                with suppress(ValueError):  # cut at either end
                    rows.append(json.loads(line))
        return [row for row in rows if row.get("split") == "train"]

    def _steps(self) -> int:
        with suppress(OSError, yaml.YAMLError, KeyError, TypeError):
            return int(yaml.safe_load((self.run / "config.yaml").read_text(encoding="utf-8"))["training"]["steps"])
        return 0


def _ended(lines: Sequence[str]) -> Making:
    """Return how a process ended that wrote these lines."""
    if not lines:
        return Making(running=False, phase="none")
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if errors or any(line.startswith("Traceback ") for line in lines):
        return Making(running=False, phase="failed", error=[*lines, *errors][-1])
    done = any(line.startswith("speak: ") or " is complete: step " in line for line in lines)
    return Making(running=False, phase="done" if done else "stopped")


def _lock(file: BufferedRandom) -> bool:
    """Lock an open file; False if another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
