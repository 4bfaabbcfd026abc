"""Threads that compile steps in the order they were traced, while Python traces the next ones."""

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import tensorflow as tf

from xtts.shared.system.machine import usable_cores

_NICENESS = 10


class Compiler:
    """Compiles one step for every two cores, as XLA compiles each on several threads; tracing and training go first.

    Leaving the `with` block drops the steps still waiting.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max(1, usable_cores() // 2), "compiler", initializer=_let_others_go_first)
        self._compilations: dict[str, Future[float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def submit(self, name: str, call: Callable[[], object]) -> None:
        """Queue a step for compilation; call: from `on_blank_inputs`."""

        def compile_step() -> float:
            began = time.perf_counter()
            call()
            return time.perf_counter() - began

        self._compilations[name] = self._pool.submit(compile_step)

    def step(self, name: str) -> Future[float]:
        """The compilation of a submitted step; its result is the seconds it took."""
        return self._compilations[name]


def _let_others_go_first() -> None:
    """Lower the priority of this thread and of those it starts: meanwhile the main thread traces, on one core."""
    if sys.platform == "linux":  # elsewhere only a whole process has one
        os.nice(_NICENESS)


def on_blank_inputs(step: tf.types.experimental.PolymorphicFunction) -> Callable[[], None]:
    """Trace a call of the step on zeros, which compiles it for the loop; the step needs an input signature.

    The call is a graph without inputs or outputs. XLA's cache keeps functions called from Python and from a graph
    apart, and identifies functions by a counter that every tensor handed to Python also advances.
    """

    def call() -> None:
        outputs = step(*(tf.zeros(spec.shape, spec.dtype) for spec in step.input_signature))
        with tf.control_dependencies(tf.nest.flatten(outputs)):
            tf.no_op()

    function = tf.function(call, input_signature=[], autograph=False)
    function.get_concrete_function()
    return lambda: function() and None
