"""Failures of a runtime, TensorFlow or JAX, turned into errors that say what to do."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from xtts.shared.errors import LockstepError

_WORKER_LOST = re.compile(
    r"heartbeat|Socket closed|Connection re(set|fused)|Broken pipe|failed to connect", re.IGNORECASE
)

_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|out of memory", re.IGNORECASE)


class RunEnded(LockstepError):
    """A run cannot continue, but the state after its last whole step is good: the trainer saves it before it ends."""


@contextmanager
def explained(task: str, fix: str, *, resume: str = "--resume") -> Iterator[None]:
    """Turn a failure of a runtime into a `RunEnded`.

    task: what failed, first in the message; resume: the option or command that continues a run that lost a worker.
    """
    try:
        yield
    except _errors_of_runtimes() as error:
        message = plain_message(error)
        if _OUT_OF_MEMORY.search(message) or type(error).__name__ == "ResourceExhaustedError":
            fix = "lower training.batch_size (see xtts-doctor), or exclude the longest clips with shapes.max_mel_frames"
            raise RunEnded(task, found="out of memory", fix=fix, exit_code=1) from None
        if _WORKER_LOST.search(str(error)):
            match = re.search(r"/job:worker/replica:0/task:(\d+)", str(error))
            raise RunEnded(
                task, found=f"worker {match[1]} has ended" if match else "a worker has ended",
                fix=f"see its output, then start all workers again, any number, with {resume}", exit_code=1,
            ) from None
        raise RunEnded(task, found=message, fix=fix, exit_code=1) from None


def _errors_of_runtimes() -> tuple[type[Exception], ...]:
    """The errors of the runtimes that this process has imported."""
    tensorflow, jax = sys.modules.get("tensorflow"), sys.modules.get("jax")
    return (*([tensorflow.errors.OpError] if tensorflow else []), *([jax.errors.JaxRuntimeError] if jax else []))


def compile_fix() -> str:
    """The fix for a step that does not compile; the feature cache is not involved."""
    return f"if XLA's compilation cache is damaged, remove it: {os.environ.get('TF_XLA_FLAGS', 'not in use')}"


def plain_message(error: Exception) -> str:
    """The first line of a runtime's message, without node names, which mean nothing to users."""
    return re.sub(r"\{\{.*?\}\}\s*", "", getattr(error, "message", str(error))).partition("\n")[0][:300]
