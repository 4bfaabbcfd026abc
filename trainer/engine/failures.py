"""Failures inside the graph, turned into errors that say what to do."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from xtts.shared.errors import LockstepError


@contextmanager
def explained(where: str, fix: str) -> Iterator[None]:
    """Turn a failure inside the graph, which Python cannot foresee, into a `LockstepError`."""
    try:
        yield
    except tf.errors.ResourceExhaustedError:
        raise LockstepError(where, found="out of memory", fix="lower training.batch_size", exit_code=1) from None
    except tf.errors.OpError as error:
        if _WORKER_LOST.search(error.message):
            raise _lost_worker(where, error) from None
        raise LockstepError(where, found=first_line(error), fix=fix, exit_code=1) from None


_WORKER_LOST = re.compile(
    r"heartbeat|Socket closed|Connection re(set|fused)|Broken pipe|failed to connect", re.IGNORECASE
)


def _lost_worker(where: str, error: tf.errors.OpError) -> LockstepError:
    """The error of a worker that waited for one that has ended."""
    named = re.search(r"/job:worker/replica:0/task:(\d+)", error.message)
    return LockstepError(
        where, found=f"worker {named[1]} has ended" if named else "a worker has ended",
        fix="see its output, then start all workers again with --resume, as many as you like", exit_code=1,
    )  # fmt: skip


def compile_fix() -> str:
    """The fix for a step that does not compile; the feature cache is not involved."""
    return f"if XLA's compilation cache is damaged, remove it: {os.environ.get('TF_XLA_FLAGS', 'not in use')}"


def first_line(error: tf.errors.OpError) -> str:
    """TensorFlow's message without node names, which mean nothing to users."""
    return re.sub(r"\{\{.*?\}\}\s*", "", error.message).splitlines()[0][:300]
