"""A model as the loop sees it: weights, losses on a batch, and the random numbers that they need."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import tensorflow as tf

from xtts.trainer.data.batch import AnyBatch
from xtts.trainer.data.clip_order import fold_key
from xtts.trainer.loop.metrics import Metrics

_STEP, _VALIDATION = 10, 11
"""Constants folded into the keys of training steps and validation; they follow those of clip_order.py."""


class Network(Protocol):
    """A model as the optimizer sees it."""

    @property
    def trainable_variables(self) -> list[tf.Variable]:
        """Weights to train."""


class Objective(ABC):
    """What a model is trained for. Sums are by name in `metrics.losses`."""

    metrics: ClassVar[Metrics]
    edges: ClassVar[tuple[str, ...]] = ()
    """Parts of the paths of matrices that are not inside the network, which Muon leaves to AdamW."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - a `Network`, of whose kind the subclass knows more
        self.model = model

    def random_inputs(
        self, batch: AnyBatch, seed: tf.Tensor | int, step: tf.Tensor, *, replica: int = 0, replicas: int = 1,
    ) -> tuple[tf.Tensor, ...]:
        """The random numbers of a training step, keyed by (seed, step): a row for each clip, and last a seed int32[2].

        Unless a subclass draws some itself, the rows are the clips' positions in the step, to draw by: int32[B].
        The batch is the equal share of `replica`, one of `replicas`.
        """
        size = batch.mel.shape[0]
        return tf.range(replica * size, (replica + 1) * size), training_key(seed, step)

    @abstractmethod
    def loss_sums(self, batch: AnyBatch, random: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        """Losses of each clip, summed over the values that `counts` counts: float32[B] each."""

    @abstractmethod
    def counts_of(self, frames: tf.Tensor | float, tokens: tf.Tensor | float) -> list[tf.Tensor | float]:
        """Number of values in each sum over this many useful frames and tokens, in the order of `metrics.losses`."""

    def counts(self, batch: AnyBatch) -> tf.Tensor:
        """Number of values in each sum over a batch: float32[K]; crops have no tokens."""
        lengths = batch.mel_length, getattr(batch, "token_length", 0)
        return tf.stack(self.counts_of(*(tf.cast(tf.reduce_sum(length), tf.float32) for length in lengths)))

    def held_out_sums(self, batch: AnyBatch, clips: tf.Tensor, seed: tf.Tensor, bucket: int) -> dict[str, tf.Tensor]:
        """Compute at least the `loss_sums` of `metrics.held_out`; clips: int32[B], positions in the split, as seeds."""
        return self.loss_sums(batch, (clips, validation_key(seed, bucket)))


def training_key(seed: tf.Tensor | int, step: tf.Tensor) -> tf.Tensor:
    """The key of a training step: int32[2]."""
    return tf.cast(fold_key(seed, _STEP, step) & 0x7FFFFFFF, tf.int32)


def validation_key(seed: tf.Tensor | int, bucket: int) -> tf.Tensor:
    """The key of a bucket's validation: int32[2]."""
    return tf.cast(fold_key(seed, _VALIDATION, bucket) & 0x7FFFFFFF, tf.int32)
