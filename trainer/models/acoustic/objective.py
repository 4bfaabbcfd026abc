"""The acoustic model's losses: prior, flow and durations."""

from typing import NamedTuple, cast

import tensorflow as tf

from xtts.trainer.data.batch import AnyBatch, Batch
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.objective import Objective, training_key, validation_key
from xtts.trainer.models.random_numbers import fold_seed, logit_normal, random_normal, random_uniform, spread_times

VALIDATION_TIMES = 4
"""Flow times at which a validation clip's loss is computed, stratified over [0, 1)."""
_NOISE, _TIME, _DROPOUT = 0, 1, 2
"""Uses of a training step's key."""
ACOUSTIC = Metrics(
    weights={"prior": 1.0, "flow": 1.0, "duration": 1.0}, held_out=("prior", "flow", "duration"),
    compared=("flow",), clipped_apart={"duration_gradient_norm": "/duration_predictor/"},
)


class RandomInputs(NamedTuple):
    """The random numbers of a training step."""

    noise: tf.Tensor
    """float32[B, T, M], standard normal."""
    time: tf.Tensor
    """float32[B] in [0, 1]."""
    dropout: tf.Tensor | None
    """int32[2], a seed; None: nothing is dropped."""


class AcousticObjective(Objective):
    """See `Objective`.

    The flow decides which checkpoint is best: on an hour of speech the duration loss rises after a thousand steps,
    while listeners' figures still improve. The duration predictor is clipped apart because the gradient of its deviance
    is unbounded: under one global norm it would scale the others to almost zero while durations are still far off.
    Muon leaves the first and the last matrix to AdamW, as its authors advise, and those of the adaptive norms, which
    turn one vector per clip into scales; filters of one channel are not matrices.
    """

    metrics = ACOUSTIC
    edges = (
        "/modulation/", "place_projection", "noisy_projection", "decoder/output_projection", "mean_projection",
        "/depthwise/",
    )

    def random_inputs(
        self, batch: AnyBatch, seed: tf.Tensor | int, step: tf.Tensor, *, replica: int = 0, replicas: int = 1,
    ) -> RandomInputs:
        """See `Objective`."""
        size, shape = batch.mel.shape[0], batch.mel.shape[1:]
        key, first = training_key(seed, step), replica * size
        rows = tf.range(first, first + size)
        noise = random_normal(fold_seed(key, _NOISE), rows, *shape)
        # Stratified times: one in each of n equal intervals of [0, 1) for the n clips, to cover the path. Then more
        # of them in its middle, where the field is hardest to learn (Esser et al., 2403.03206, section 3.1).
        position = tf.cast(rows, tf.float32) + random_uniform(fold_seed(key, _TIME), rows)
        time = logit_normal(position / (size * replicas))
        return RandomInputs(noise, time, fold_seed(key, _DROPOUT))

    def loss_sums(self, batch: AnyBatch, random: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        numbers = RandomInputs(*random)
        aligned = self.model.align_clips(cast(Batch, batch), numbers.dropout)
        flow = self.model.flow_loss(aligned, numbers.noise, numbers.time)
        return {"prior": aligned.prior, "flow": flow, "duration": aligned.duration}

    def counts_of(self, frames: tf.Tensor | float, tokens: tf.Tensor | float) -> list[tf.Tensor | float]:
        """See `Objective`."""
        return [frames * self.model.mel_channels, frames * self.model.mel_channels, tokens]

    def held_out_sums(self, batch: AnyBatch, clips: tf.Tensor, seed: tf.Tensor, bucket: int) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        aligned = self.model.align_clips(cast(Batch, batch), None)
        offset, key = spread_times(clips), validation_key(seed, bucket)

        def add(i: tf.Tensor, flow: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            noise = random_normal(tf.stack([key[0] + i, key[1]]), clips, *batch.mel.shape[1:])
            time = (tf.cast(i, tf.float32) + offset) / VALIDATION_TIMES
            return i + 1, flow + self.model.flow_loss(aligned, noise, time)

        start = (tf.constant(0), tf.zeros_like(offset))
        _, flow = tf.while_loop(lambda i, _: i < VALIDATION_TIMES, add, start, maximum_iterations=VALIDATION_TIMES)
        return {"prior": aligned.prior, "flow": flow / VALIDATION_TIMES, "duration": aligned.duration}
