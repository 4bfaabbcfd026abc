"""The objective of each model: its losses on a batch, and the random numbers that they need."""

from typing import NamedTuple, Protocol, cast

import tensorflow as tf

from xtts.trainer.data.batch import AnyBatch, Batch, CropBatch
from xtts.trainer.data.clip_order import fold_key
from xtts.trainer.loop.metrics import ACOUSTIC, VOCODER, Metrics
from xtts.trainer.model.acoustic_model import AcousticModel
from xtts.trainer.model.random_numbers import (
    RandomInputs,
    fold_seed,
    logit_normal,
    random_normal,
    random_uniform,
    spread_times,
)
from xtts.trainer.model.vocoder import Vocoder

VALIDATION_TIMES = 4
"""Flow times at which a validation clip's loss is computed, stratified over [0, 1)."""
_STEP, _VALIDATION = 10, 11
"""Constants folded into the keys of training steps and validation; they follow those of clip_order.py."""
_NOISE, _TIME, _DROPOUT = 0, 1, 2
"""Uses of a training step's key."""


class Network(Protocol):
    """A model as the optimizer sees it."""

    @property
    def trainable_variables(self) -> list[tf.Variable]:
        """Weights to train."""

    @property
    def parameter_count(self) -> int:
        """Number of trainable values."""


class Objective(Protocol):
    """A model as the steps see it. Sums are by name in `metrics.losses`."""

    metrics: Metrics

    def random_inputs(
        self, batch: AnyBatch, seed: tf.Tensor | int, step: tf.Tensor, *, replica: int = 0,
        present: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, ...]:  # fmt: skip
        """The random numbers of a training step, keyed by (seed, step): a row for each clip, and last a seed int32[2].

        The batch is this replica's equal share. present: `present_clips` of all shares; None for a single replica.
        """

    def loss_sums(self, batch: AnyBatch, random: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        """Losses of each clip, summed over the values that `counts` counts: float32[B] each."""

    def counts(self, batch: AnyBatch) -> tf.Tensor:
        """Number of values in each sum over a batch, in the order of `metrics.losses`: float32[K]."""

    def counts_of(self, frames: float, tokens: float) -> list[float]:
        """Number of values in each sum over this many useful frames and tokens, in the same order."""

    def held_out_sums(self, batch: AnyBatch, clips: tf.Tensor, seed: tf.Tensor, bucket: int) -> dict[str, tf.Tensor]:
        """Compute at least the `loss_sums` of `metrics.held_out`; clips: int32[B], positions in the split, as seeds."""


def present_clips(batch: AnyBatch) -> tf.Tensor:
    """float32[B]: 1 for a clip, 0 for a padding row."""
    return tf.cast(batch.mel_length > 0, tf.float32)


def _key(seed: tf.Tensor | int, use: int, index: tf.Tensor | int) -> tf.Tensor:
    """The key of a training step, or of a bucket's validation: int32[2]."""
    return tf.cast(fold_key(seed, use, index) & 0x7FFFFFFF, tf.int32)


class AcousticObjective:
    """The acoustic model: prior, flow and durations."""

    metrics = ACOUSTIC

    def __init__(self, model: AcousticModel) -> None:
        self.model = model

    @staticmethod
    def random_inputs(
        batch: AnyBatch, seed: tf.Tensor | int, step: tf.Tensor, *, replica: int = 0, present: tf.Tensor | None = None
    ) -> RandomInputs:
        """See `Objective`."""
        size, shape = batch.mel.shape[0], batch.mel.shape[1:]
        key, first = _key(seed, _STEP, step), replica * size
        rows = tf.range(first, first + size)
        noise = random_normal(fold_seed(key, _NOISE), rows, *shape)
        # Stratified times: one in each of n equal intervals of [0, 1) for the n clips, to cover the path. Then more
        # of them in its middle, where the field is hardest to learn (Esser et al., 2403.03206, section 3.1).
        present = present_clips(batch) if present is None else present
        before = tf.cumsum(present, exclusive=True)[first : first + size]
        position = before + random_uniform(fold_seed(key, _TIME), rows)
        time = logit_normal(present[first : first + size] * position / tf.maximum(tf.reduce_sum(present), 1.0))
        return RandomInputs(noise, time, fold_seed(key, _DROPOUT))

    def loss_sums(self, batch: AnyBatch, random: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        numbers = RandomInputs(*random)
        aligned = self.model.align_clips(cast(Batch, batch), numbers.dropout)
        flow = self.model.flow_loss(aligned, numbers.noise, numbers.time)
        return {"prior": aligned.prior, "flow": flow, "duration": aligned.duration}

    def counts(self, batch: AnyBatch) -> tf.Tensor:
        """See `Objective`."""
        clips = cast(Batch, batch)
        lengths = (clips.mel_length, clips.token_length)
        return tf.stack(self.counts_of(*(tf.cast(tf.reduce_sum(length), tf.float32) for length in lengths)))

    def counts_of(self, frames: tf.Tensor | float, tokens: tf.Tensor | float) -> list[tf.Tensor | float]:
        """See `Objective`."""
        return [frames * self.model.mel_channels, frames * self.model.mel_channels, tokens]

    def held_out_sums(self, batch: AnyBatch, clips: tf.Tensor, seed: tf.Tensor, bucket: int) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        aligned = self.model.align_clips(cast(Batch, batch), None)
        offset, key = spread_times(clips), _key(seed, _VALIDATION, bucket)

        def add(i: tf.Tensor, flow: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            noise = random_normal(tf.stack([key[0] + i, key[1]]), clips, *batch.mel.shape[1:])
            time = (tf.cast(i, tf.float32) + offset) / VALIDATION_TIMES
            return i + 1, flow + self.model.flow_loss(aligned, noise, time)

        start = (tf.constant(0), tf.zeros_like(offset))
        _, flow = tf.while_loop(lambda i, _: i < VALIDATION_TIMES, add, start, maximum_iterations=VALIDATION_TIMES)
        return {"prior": aligned.prior, "flow": flow / VALIDATION_TIMES, "duration": aligned.duration}


class CropInputs(NamedTuple):
    """The random numbers of a vocoder's training step."""

    positions: tf.Tensor
    """int32[B]: positions of the crops in the step's batch."""
    seed: tf.Tensor
    """int32[2]."""


class VocoderObjective:
    """The vocoder and its discriminators; crops are weighted by their useful frames."""

    metrics = VOCODER

    def __init__(self, model: Vocoder) -> None:
        self.model = model

    @staticmethod
    def random_inputs(
        batch: AnyBatch, seed: tf.Tensor | int, step: tf.Tensor, *, replica: int = 0, present: tf.Tensor | None = None
    ) -> CropInputs:
        """See `Objective`."""
        size = batch.mel.shape[0]
        return CropInputs(tf.range(replica * size, (replica + 1) * size), _key(seed, _STEP, step))

    def loss_sums(self, batch: AnyBatch, random: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        return self._sums(batch, *random)

    def counts(self, batch: AnyBatch) -> tf.Tensor:
        """See `Objective`."""
        frames = tf.cast(tf.reduce_sum(batch.mel_length), tf.float32)
        return tf.stack(self.counts_of(frames, 0.0))

    def counts_of(self, frames: float, tokens: float) -> list[float]:
        """See `Objective`."""
        return [frames] * len(self.metrics.losses)

    def held_out_sums(self, batch: AnyBatch, clips: tf.Tensor, seed: tf.Tensor, bucket: int) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        return self._sums(batch, clips, _key(seed, _VALIDATION, bucket), with_noise=False)

    def _sums(
        self, batch: AnyBatch, numbers: tf.Tensor, seed: tf.Tensor, *, with_noise: bool = True
    ) -> dict[str, tf.Tensor]:
        losses = self.model.losses(cast(CropBatch, batch), numbers, seed, with_noise=with_noise)
        frames = tf.cast(batch.mel_length, tf.float32)
        return {name: loss * frames for name, loss in losses.items()}
