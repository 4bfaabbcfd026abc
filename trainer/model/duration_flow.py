"""Durations that are drawn: conditional flow matching (2210.02747) over the tokens of a clip.

Letters: B batch, L tokens, D width. The mean of `DurationPredictor` is one duration for a text; a speaker has many.
"""

import math
from typing import NamedTuple

import keras
import tensorflow as tf

from xtts.shared.model_config import ModelConfig
from xtts.trainer.model.decoder_blocks import AdaptiveNorm, DecoderBlock
from xtts.trainer.model.layers import Seeds, TimeEmbedding, apply_mask, axis_size, glorot

STEPS = 4
"""Midpoint steps from noise to durations, two evaluations each. For Gaussians of a quarter to three times the noise's
deviation they are within 1% of it; eight Euler steps lose 15% to 24%."""
_CENTRE, _DEVIATION = math.log(5.0), 0.35
"""Log-durations as the flow sees them: five frames are 0, and the usual spread of a token around its mean is near 1."""
_KERNEL, _EXPANSION, _BLOCKS = 7, 2, 2
_CLIP_FEATURES = 2


class Timing(NamedTuple):
    """What decides durations besides the text and the speed."""

    frames: tf.Tensor | None = None
    """int32[B]: frames of the whole clip, at least its tokens; 0 or no tensor: what the durations sum up to."""
    start: tf.Tensor | None = None
    """float32[B, L]: where the duration flow starts, standard normal times the noise asked for."""
    drawn: tf.Tensor | None = None
    """bool[]: whether the flow decides; where not, the mean does, as without `start`."""


def duration_width(config: ModelConfig) -> int:
    """D of the duration flow: half that of the predictor, even."""
    return 2 * max(config.duration_width // 4, 4)


def log_durations(durations: tf.Tensor, uniform: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Natural log of durations, made continuous: float32[B, L], 0 in the padding.

    durations: int32[B, L], uniform: float32[B, L] in -1..1, valid: bool[B, L, 1]. A token without a frame counts as
    one frame.
    """
    # A network that learns whole numbers piles up on them. Noise on each duration would add up over a clip; so it is
    # the boundaries between tokens that move, by up to a quarter of a frame, and a clip keeps its length.
    inside = valid[..., 0]
    inner = inside & tf.pad(inside[:, 1:], [[0, 0], [0, 1]])
    moved = apply_mask(0.25 * uniform, inner)
    frames = tf.maximum(tf.cast(durations, tf.float32), 1.0) + moved - tf.pad(moved[:, :-1], [[0, 0], [1, 0]])
    return apply_mask(tf.math.log(frames), inside)


class DurationFlow(keras.layers.Layer):  # type: ignore[misc]
    """The vector field of log-durations: ConvNeXt blocks over tokens, conditioned on their encodings and on the time.

    Convolutions reach a few tokens. For the tempo of a whole clip, each token also sees the sum over the clip.
    """

    def __init__(self, config: ModelConfig, seeds: Seeds, *, dtype: keras.DTypePolicy) -> None:
        super().__init__(dtype=dtype, name="duration_flow")
        width = self.width = duration_width(config)
        self.text_width = config.text_width
        self.noisy_projection = keras.layers.Dense(
            width, use_bias=False, kernel_initializer=glorot(seeds), dtype=dtype, name="noisy_projection"
        )
        self.text_projection = keras.layers.Dense(
            width, kernel_initializer=glorot(seeds), dtype=dtype, name="text_projection"
        )
        self.time_embedding = TimeEmbedding(width, seeds, dtype=dtype, name="time_embedding")
        self.blocks = [
            DecoderBlock(width, _KERNEL, _EXPANSION, width, seeds, dtype=dtype, name=f"block_{i}")
            for i in range(_BLOCKS)
        ]
        self.norm = AdaptiveNorm(width, width, gated=False, dtype=dtype, name="norm")
        self.output_projection = keras.layers.Dense(
            1, kernel_initializer="zeros", dtype="float32", name="output_projection"
        )

    def build(self) -> None:
        """Create the weights."""
        self.noisy_projection.build((None, _CLIP_FEATURES))
        self.text_projection.build((None, self.text_width))
        self.time_embedding.build()
        for block in self.blocks:
            block.build()
        self.norm.build()
        self.output_projection.build((None, self.width))

    def call(self, noisy: tf.Tensor, encodings: tf.Tensor, valid: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
        """noisy: float32[B, L], encodings: [B, L, D], valid: bool[B, L, 1], time: float32[B] -> float32[B, L]."""
        noisy = apply_mask(noisy[..., tf.newaxis], valid)
        tokens = tf.reduce_sum(tf.cast(valid, tf.float32), axis=1, keepdims=True)
        # Divided by the root of the tokens, the sum of the noise has deviation 1 in a text of any length.
        whole = tf.reduce_sum(noisy, axis=1, keepdims=True) * tf.math.rsqrt(tf.maximum(tokens, 1.0))
        x = self.noisy_projection(tf.concat([noisy, whole + tf.zeros_like(noisy)], axis=-1))
        x += self.text_projection(apply_mask(encodings, valid))
        condition = tf.nn.silu(self.time_embedding(time))
        for block in self.blocks:
            x = block(x, valid, condition)
        return self.output_projection(self.norm(x, condition)[0])[..., 0]

    def loss(
        self, encodings: tf.Tensor, durations: tf.Tensor, valid: tf.Tensor, noise: tf.Tensor, time: tf.Tensor
    ) -> tf.Tensor:
        """Squared error of the vector field at one flow time per clip, summed over its tokens: float32[B].

        encodings: [B, L, D], durations: int32[B, L], valid: bool[B, L, 1], noise: float32[B, L, 2], standard normal, of
        the flow and of `log_durations`, time: float32[B] in 0..1.
        """
        start, other = tf.unstack(noise, axis=-1)
        uniform = tf.math.erf(other / math.sqrt(2.0))
        target = (log_durations(durations, uniform, valid) - _CENTRE) / _DEVIATION
        moment = time[:, tf.newaxis]
        field = self((1.0 - moment) * start + moment * target, encodings, valid, time)
        return tf.reduce_sum(tf.square(apply_mask(field - (target - start), valid[..., 0])), axis=1)

    def draw(
        self, encodings: tf.Tensor, valid: tf.Tensor, start: tf.Tensor, *, steps: int | tf.Tensor = STEPS
    ) -> tf.Tensor:
        """Follow the vector field from noise to durations: float32[B, L], natural log of frames.

        encodings: [B, L, D], valid: bool[B, L, 1], start: float32[B, L], standard normal for the spread that was
        learnt, less for less of it; steps: midpoint steps, a number or int32[].
        """

        def advance(step: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            time = tf.fill([axis_size(start, 0)], tf.cast(step, tf.float32) / STEPS)
            middle = x + self(x, encodings, valid, time) * (0.5 / STEPS)
            return step + 1, x + self(middle, encodings, valid, time + 0.5 / STEPS) / STEPS

        _, x = tf.while_loop(lambda step, _: step < steps, advance, (0, start), maximum_iterations=STEPS)
        return _CENTRE + _DEVIATION * x
