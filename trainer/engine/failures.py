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
        raise LockstepError(where, found=first_line(error), fix=fix, exit_code=1) from None


def compile_fix() -> str:
    """The fix for a step that does not compile; the feature cache is not involved."""
    return f"if XLA's compilation cache is damaged, remove it: {os.environ.get('TF_XLA_FLAGS', 'not in use')}"


def first_line(error: tf.errors.OpError) -> str:
    """TensorFlow's message without node names, which mean nothing to users."""
    return re.sub(r"\{\{.*?\}\}\s*", "", error.message).splitlines()[0][:300]
