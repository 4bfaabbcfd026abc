"""From noise to mel: an ODE solver for the vector field, and classifier-free guidance.

Letters: B batch, L tokens, N evaluations of the vector field.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from xtts.trainer.model.conditioning import Conditioning
from xtts.trainer.model.layers import axis_size


class Sampling(NamedTuple):
    """How a mel is drawn."""

    schedule: tf.Tensor
    """float32[N, 3], of `sampling_schedule`."""
    guidance: tf.Tensor | None = None
    """float32[], strength G of classifier-free guidance (Ho and Salimans, arXiv 2207.12598): the field is
    conditioned + G (conditioned - null). None leaves the null condition out of the program."""
    copies: int | tf.Tensor = 1
    """Of each clip: 2 with guidance, the second under the null condition; 1 without; int32[] in an exported graph."""

    def repeat(self, x: tf.Tensor) -> tf.Tensor:
        """[B, ...] -> [copies B, ...]."""
        return x if self.guidance is None else tf.tile(x, [self.copies, *[1] * (len(x.shape) - 1)])

    def with_null(
        self, tokens: tf.Tensor, token_length: tf.Tensor, conditioning: Conditioning
    ) -> tuple[tf.Tensor, tf.Tensor, Conditioning]:
        """All copies of the clips, B of them conditioned: tokens int32[B, L], token_length int32[B], conditioning."""
        if self.guidance is None:
            return tokens, token_length, conditioning
        batch, repeated = tokens.shape[0], [None if part is None else self.repeat(part) for part in conditioning]
        dropped = tf.range(batch * self.copies) >= batch
        return self.repeat(tokens), self.repeat(token_length), Conditioning(*repeated).drop(dropped)

    def guide(self, field: tf.Tensor, batch: int) -> tf.Tensor:
        """The field to follow, float32[B, T, M], from that of all copies; batch: B."""
        if self.guidance is None:
            return field
        # One copy in an exported graph is both: the difference is exactly 0.
        conditioned, null = field[:batch], field[-batch:]
        guided = conditioned + self.guidance * (conditioned - null)
        guided.set_shape([batch, *field.shape[1:]])  # a loop keeps its shapes, and the number of copies may be unknown
        return guided


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
