"""From noise to mel: an ODE solver for the vector field."""

from collections.abc import Callable

import tensorflow as tf

from xtts.trainer.model.layers import axis_size


def solve(field: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], start: tf.Tensor, schedule: tf.Tensor) -> tf.Tensor:
    """Follow dx/dt = field(x, t) from time 0 to 1: a tensor like `start`, x at time 0.

    schedule: float32[N, 3], see `sampling_schedule`; N may be unknown in an exported graph.
    """
    evaluations = axis_size(schedule, 0)

    def advance(i: tf.Tensor, x: tf.Tensor, place: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        time, move, further = tf.unstack(schedule[i])
        slope = field(place, time)
        x += move * slope
        return i + 1, x, x + further * slope

    _, end, _ = tf.while_loop(lambda i, *_: i < evaluations, advance, (0, start, start), maximum_iterations=evaluations)
    return end
