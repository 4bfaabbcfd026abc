"""Failures inside the graph, told as errors that say what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from xtts.shared.errors import LockstepError


@contextmanager
def explained(where: str, fix: str) -> Iterator[None]:
    """Tell a failure inside the graph, which no Python can see coming, as a `LockstepError`."""
    try:
        yield
    except tf.errors.ResourceExhaustedError:
        raise LockstepError(where, found="out of memory", fix="lower training.batch_size", exit_code=1) from None
    except tf.errors.OpError as error:
        first = re.sub(r"\{\{.*?\}\}\s*", "", error.message).splitlines()[0]  # names of nodes that nobody knows
        raise LockstepError(where, found=first[:300], fix=fix, exit_code=1) from None
