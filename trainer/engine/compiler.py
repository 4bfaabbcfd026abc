"""A thread that compiles steps in the order in which they were traced, while Python traces the next ones."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Self

import tensorflow as tf

from xtts.trainer.system.device import peak_bytes


class Compiled(NamedTuple):
    """What compiling one step took."""

    seconds: float
    grown: int
    """Bytes by which compiling it and running it once raised the device's peak."""


class Compiler:
    """Compiles one step at a time; the end of the `with` block drops those that it did not come to."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compiler")
        self._steps: dict[str, Future[Compiled]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def submit(self, name: str, call: Callable[[], None]) -> None:
        """Compile a step when those before it are done; call: what `on_blank_inputs` gave."""
        self._steps[name] = self._pool.submit(_compile, call)

    def step(self, name: str) -> Future[Compiled]:
        """The compilation of a step that was submitted under this name."""
        return self._steps[name]


def _compile(call: Callable[[], None]) -> Compiled:
    began, before = time.perf_counter(), peak_bytes()
    call()
    return Compiled(time.perf_counter() - began, peak_bytes() - before)


def on_blank_inputs(step: tf.types.experimental.PolymorphicFunction) -> Callable[[], None]:
    """A call on zeros of a function with an input signature, traced now: it compiles the function for the loop.

    A graph without inputs or outputs: XLA's cache tells a function called from Python from one called in a graph, and
    finds functions by numbers that every tensor handed to Python uses up too.
    """

    def call() -> None:
        outputs = step(*(tf.zeros(part.shape, part.dtype) for part in step.input_signature))
        with tf.control_dependencies(tf.nest.flatten(outputs)):
            tf.no_op()

    function = tf.function(call, input_signature=[], autograph=False)
    function.get_concrete_function()
    return lambda: function() and None
