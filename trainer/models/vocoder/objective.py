"""The losses of the vocoder and its discriminators; crops are weighted by their useful frames."""

from typing import cast

import tensorflow as tf

from xtts.trainer.data.batch import AnyBatch, CropBatch
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.objective import Objective, validation_key

VOCODER = Metrics(
    weights={"spectrum": 3.0, "mel": 3.0, "pitch": 1.0, "adversary": 1.0, "features": 2.0, "discriminators": 1.0},
    held_out=("spectrum", "mel", "pitch"), compared=("spectrum", "mel", "pitch"),
    clipped_apart={"discriminator_gradient_norm": "/discriminator_"},
    descriptions={
        "spectrum": "the difference between the spectra of speech and recording at five resolutions.",
        "mel": "the mean absolute difference between the log-mels of speech and recording.",
        "pitch": "the errors of the pitch (log Hz) and of the voicing that are read off the mel.",
        "adversary": "how far the discriminators are from taking the speech for a recording.",
        "features": "the relative difference between what the discriminators see in speech and in recordings.",
        "discriminators": "the squared error of the discriminators on speech and recordings; 0.5 is chance.",
        "discriminator_gradient_norm": "the norm of the discriminators' gradient before clipping.",
    },
)


class VocoderObjective(Objective):
    """See `Objective`. Of the random numbers of a step it takes the crops' positions and the seed."""

    metrics = VOCODER

    def loss_sums(
        self, batch: AnyBatch, random: tuple[tf.Tensor, ...], *, with_noise: bool = True
    ) -> dict[str, tf.Tensor]:
        """See `Objective`; with_noise: add noise to half of the mels."""
        losses = self.model.losses(cast(CropBatch, batch), *random, with_noise=with_noise)
        frames = tf.cast(batch.mel_length, tf.float32)
        return {name: loss * frames for name, loss in losses.items()}

    def counts_of(self, frames: tf.Tensor | float, tokens: tf.Tensor | float) -> list[tf.Tensor | float]:
        """See `Objective`."""
        return [frames] * len(self.metrics.losses)

    def held_out_sums(self, batch: AnyBatch, clips: tf.Tensor, seed: tf.Tensor, bucket: int) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        return self.loss_sums(batch, (clips, validation_key(seed, bucket)), with_noise=False)
