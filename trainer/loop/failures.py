"""Failures inside the graph, turned into errors that say what to do."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from xtts.shared.errors import LockstepError

_WORKER_LOST = re.compile(
    r"heartbeat|Socket closed|Connection re(set|fused)|Broken pipe|failed to connect", re.IGNORECASE
)


class RunEnded(LockstepError):
    """A run cannot continue, but the state after its last whole step is good: the trainer saves it before it ends."""


@contextmanager
def explained(task: str, fix: str, *, resume: str = "--resume") -> Iterator[None]:
    """Turn a failure inside the graph into a `RunEnded`.

    task: what failed, first in the message; resume: the option or command that continues a run that lost a worker.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError:
        fix = "lower training.batch_size (see xtts-doctor), or exclude the longest clips with shapes.max_mel_frames"
        raise RunEnded(task, found="out of memory", fix=fix, exit_code=1) from None
    except tf.errors.OpError as error:
        if _WORKER_LOST.search(error.message):
            match = re.search(r"/job:worker/replica:0/task:(\d+)", error.message)
            raise RunEnded(
                task, found=f"worker {match[1]} has ended" if match else "a worker has ended",
                fix=f"see its output, then start all workers again, as many as you like, with {resume}", exit_code=1,
            ) from None  # fmt: skip
        raise RunEnded(task, found=plain_message(error), fix=fix, exit_code=1) from None


def compile_fix() -> str:
    """The fix for a step that does not compile; the feature cache is not involved."""
    return f"if XLA's compilation cache is damaged, remove it: {os.environ.get('TF_XLA_FLAGS', 'not in use')}"


def plain_message(error: tf.errors.OpError) -> str:
    """The first line of TensorFlow's message, without node names, which mean nothing to users."""
    return re.sub(r"\{\{.*?\}\}\s*", "", error.message).splitlines()[0][:300]
