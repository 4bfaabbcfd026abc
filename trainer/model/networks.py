"""The three networks of the acoustic model: text encoder, duration predictor and flow decoder.

Letters: B batch, L tokens, T frames, M mel channels, D width, C width of the condition.
"""

import itertools
import math
from collections.abc import Callable

import keras
import tensorflow as tf

from xtts.shared.model_config import ModelConfig
from xtts.trainer.model.alignment import duration_path, frame_places
from xtts.trainer.model.conditioning import Conditioning, Vocabularies
from xtts.trainer.model.decoder_blocks import AdaptiveNorm, CoarseLevel, DecoderBlock, apply_around
from xtts.trainer.model.layers import (
    ConvolutionBlock,
    LayerNorm,
    Seeds,
    TimeEmbedding,
    TransformerBlock,
    apply_mask,
    axis_size,
    embedding_table,
    glorot,
)
from xtts.trainer.model.random_numbers import fold_seed
from xtts.trainer.model.reference_encoder import CrossAttention

PLACE_FEATURES = 4


class TextEncoder(keras.layers.Layer):  # type: ignore[misc]
    """Tokens to encodings: embedding, convolutional pre-net, Transformer blocks."""

    def __init__(
        self, config: ModelConfig, vocabularies: Vocabularies, seeds: Seeds, *, dtype: keras.DTypePolicy
    ) -> None:
        super().__init__(dtype=dtype, name="text_encoder")
        width, self.width = config.text_width, config.text_width
        self.embedding = keras.layers.Embedding(
            vocabularies.tokens,
            width,
            keras.initializers.RandomNormal(0.0, 0.5, seed=next(seeds)),
            dtype=dtype,
            name="tokens",
        )
        self.speaker = embedding_table(vocabularies.speakers, width, seeds, dtype=dtype, name="speakers")
        self.language = embedding_table(vocabularies.languages, width, seeds, dtype=dtype, name="languages")
        self.prenet = [
            ConvolutionBlock(width, width, config.prenet_kernel, config.dropout, seeds, dtype=dtype, name=f"prenet_{i}")
            for i in range(config.prenet_layers)
        ]
        self.blocks = [
            TransformerBlock(
                width, config.text_heads, config.text_expansion, config.dropout, seeds, dtype=dtype, name=f"block_{i}"
            )
            for i in range(config.text_blocks)
        ]
        self.voice = None
        if config.voice_latents:
            self.voice = CrossAttention(width, config.voice_width, config.text_heads, seeds, dtype=dtype, name="voice")
        self.norm = LayerNorm(dtype=dtype, name="norm")

    def build(self) -> None:
        """Create the weights."""
        for layer in (self.embedding, self.speaker, self.language):
            if layer is not None:
                layer.build(None)
        blocks: list[keras.layers.Layer] = [*self.prenet, *self.blocks]
        for block in blocks:
            block.build()
        if self.voice is not None:
            self.voice.build()
        self.norm.build((None, self.width))

    def call(
        self, tokens: tf.Tensor, valid: tf.Tensor, conditioning: Conditioning, seed: tf.Tensor | None
    ) -> tf.Tensor:
        """tokens: int32[B, L], valid: bool[B, L, 1], seed: int32[2] | None -> [B, L, D], zero in the padding."""
        # Replace padding before the look-up: an id outside the table is an error on a CPU.
        x = self.embedding(tf.where(valid[..., 0], tokens, 0))
        if self.speaker is not None:
            x += self.speaker(conditioning.speaker)[:, tf.newaxis]
        if self.language is not None:
            x += self.language(conditioning.language)[:, tf.newaxis]
        for i, block in enumerate(self.prenet):
            x = block(x, valid, fold_seed(seed, i))
        if self.voice is not None:
            x += self.voice(x, conditioning.voice)
        for i, block in enumerate(self.blocks, len(self.prenet)):
            x = block(x, valid, fold_seed(seed, i))
        return apply_mask(self.norm(x), valid)


class DurationPredictor(keras.layers.Layer):  # type: ignore[misc]
    """Log-durations in frames from encodings (Glow-TTS, section 3.3)."""

    def __init__(self, config: ModelConfig, seeds: Seeds, *, dtype: keras.DTypePolicy) -> None:
        super().__init__(dtype=dtype, name="duration_predictor")
        self.width = config.duration_width
        widths = [config.text_width] + [self.width] * config.duration_layers
        self.blocks = [
            ConvolutionBlock(
                width, out, config.duration_kernel, config.duration_dropout, seeds, dtype=dtype, name=f"convolution_{i}"
            )
            for i, (width, out) in enumerate(itertools.pairwise(widths))
        ]
        # Starts at five frames per token (LJSpeech: six per character): far from there the deviance is steep.
        self.output_projection = keras.layers.Dense(
            1,
            kernel_initializer="zeros",
            bias_initializer=keras.initializers.Constant(math.log(5.0)),
            dtype="float32",
            name="output_projection",
        )

    def build(self) -> None:
        """Create the weights."""
        for block in self.blocks:
            block.build()
        self.output_projection.build((None, self.width))

    def call(self, encodings: tf.Tensor, valid: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """encodings: [B, L, D], valid: bool[B, L, 1] -> float32[B, L], natural log of frames."""
        x = encodings
        for i, block in enumerate(self.blocks):
            x = block(x, valid, fold_seed(seed, i))
        return self.output_projection(x)[..., 0]


def position_features(first: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Position of each frame in its token, and the token's duration; zero for a frame without a token.

    first, lengths: int32[B, T], first frame and frames of the token -> float32[B, T, 4]
    """
    # Without it the decoder could infer the position only from changes between tokens.
    length = tf.cast(tf.maximum(lengths, 1), tf.float32)
    angle = math.pi * (tf.cast(tf.range(axis_size(first, 1)) - first, tf.float32) + 0.5) / length
    features = tf.stack([tf.cos(angle), tf.sin(angle), tf.cos(2.0 * angle), tf.math.log(length)], axis=-1)
    return tf.where(lengths[..., tf.newaxis] > 0, features, 0.0)


class FlowDecoder(keras.layers.Layer):  # type: ignore[misc]
    """The vector field: ConvNeXt blocks over frames, conditioned on the text per frame and on the time per clip."""

    def __init__(
        self, config: ModelConfig, mel_channels: int, vocabularies: Vocabularies, seeds: Seeds, *,
        dtype: keras.DTypePolicy,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, name="decoder")
        width, self.width = config.decoder_width, config.decoder_width
        self.text_width, self.mel_channels = config.text_width, mel_channels
        condition = max([width, *(level.width for level in config.decoder_levels)])
        # What the coarse level shall know of the text need not pass through the narrow blocks.
        coarse_width = config.decoder_levels[0].width if config.decoder_levels else 0
        self.noisy_projection = keras.layers.Dense(
            width, use_bias=False, kernel_initializer=glorot(seeds), dtype=dtype, name="noisy_projection"
        )
        self.text_projection = keras.layers.Dense(
            width + coarse_width, kernel_initializer=glorot(seeds), dtype=dtype, name="text_projection"
        )
        self.place_projection = keras.layers.Dense(
            width, use_bias=False, kernel_initializer=glorot(seeds), dtype=dtype, name="place_projection"
        )
        self.time_embedding = TimeEmbedding(condition, seeds, dtype=dtype, name="time_embedding")
        self.speaker = embedding_table(vocabularies.speakers, condition, seeds, dtype=dtype, name="speakers")
        self.language = embedding_table(vocabularies.languages, condition, seeds, dtype=dtype, name="languages")
        self.voice, self.voice_width = None, config.voice_width
        if config.voice_latents:
            self.voice = keras.layers.Dense(condition, kernel_initializer=glorot(seeds), dtype=dtype, name="voice")
        self.blocks = [
            DecoderBlock(
                width, config.decoder_kernel, config.decoder_expansion, condition, seeds, dtype=dtype, name=f"block_{i}"
            )
            for i in range(config.decoder_blocks)
        ]
        self.coarse, self.condition_width = None, condition
        if config.decoder_levels:
            self.coarse = CoarseLevel(config, 0, width, condition, seeds, dtype=dtype)
        self.noisy_skip = keras.layers.Dense(
            mel_channels, kernel_initializer="zeros", dtype="float32", name="noisy_skip"
        )
        self.norm = AdaptiveNorm(width, condition, gated=False, dtype=dtype, name="norm")
        self.output_projection = keras.layers.Dense(
            mel_channels, kernel_initializer="zeros", dtype="float32", name="output_projection"
        )

    def build(self) -> None:
        """Create the weights."""
        self.noisy_projection.build((None, self.mel_channels))
        self.text_projection.build((None, self.mel_channels + self.text_width))
        self.place_projection.build((None, PLACE_FEATURES))
        for table in (self.speaker, self.language):
            if table is not None:
                table.build(None)
        if self.voice is not None:
            self.voice.build((None, self.voice_width))
        self.time_embedding.build()
        for block in self.blocks:
            block.build()
        if self.coarse is not None:
            self.coarse.build()
        self.noisy_skip.build((None, self.condition_width))
        self.norm.build()
        self.output_projection.build((None, self.width))

    def regulate_length(
        self, encodings: tf.Tensor, mean: tf.Tensor, durations: tf.Tensor, frames: int | tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Repeat means and encodings of the tokens over their frames, T = frames; zero without a token.

        encodings: [B, L, D], mean: float32[B, L, M], durations: int32[B, L] -> float32[B, T, M], [B, T, D]
        """
        text = self.text_projection(tf.concat([tf.cast(mean, encodings.dtype), encodings], axis=-1))
        values = tf.concat([mean, tf.cast(text, tf.float32)], axis=-1)
        spread = tf.matmul(duration_path(durations, frames), values)
        aligned, fine, coarse = tf.split(spread, [self.mel_channels, self.width, -1], axis=-1)
        places = self.place_projection(position_features(*frame_places(durations, frames)))
        text = tf.concat([tf.cast(fine, encodings.dtype) + places, tf.cast(coarse, encodings.dtype)], axis=-1)
        return aligned, text

    def condition(self, time: tf.Tensor, conditioning: Conditioning) -> tf.Tensor:
        """Condition of the adaptive norms: time float32[B] in 0..1 -> [B, D]."""
        condition = self.time_embedding(time)
        if self.speaker is not None:
            condition += self.speaker(conditioning.speaker)
        if self.language is not None:
            condition += self.language(conditioning.language)
        if self.voice is not None:
            condition += self.voice(tf.reduce_mean(conditioning.voice, axis=1))
        return tf.nn.silu(condition)

    def call(self, noisy: tf.Tensor, text: tf.Tensor, valid: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
        """noisy: [B, T, M], text: [B, T, D], valid: bool[B, T, 1], condition: [B, D] -> float32[B, T, M]."""
        # The projection of a concatenation is the sum of projections; the text's is computed per token.
        fine, coarse = tf.split(text, [self.width, -1], axis=-1)
        x = self.noisy_projection(noisy) + fine
        x = apply_around(self.coarse, self.blocks, x, valid, condition, coarse)
        field = self.output_projection(self.norm(x, condition)[0])
        # The field subtracts the noise, channel by channel: more than narrow blocks can carry. A share of the input
        # that depends on the time relieves them of it (c_skip of Karras et al., 2206.00364, section 5).
        return field + self.noisy_skip(condition)[:, tf.newaxis] * tf.cast(noisy, tf.float32)

    def solve(
        self, start: tf.Tensor, text: tf.Tensor, valid: tf.Tensor, conditioning: Conditioning, schedule: tf.Tensor
    ) -> tf.Tensor:
        """Follow the vector field from noise at time 0 to a normalised mel at time 1: float32[B, T, M].

        start: float32[B, T, M], the noise, zero outside the clip, valid: bool[B, T, 1], schedule: float32[N, 3], of
        `sampling_schedule`; text and conditioning as in `call` and `condition`.
        """
        rows = axis_size(text, 0)

        def field(mel: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
            return self(mel, text, valid, self.condition(tf.fill([rows], time), conditioning))

        return solve(field, start, schedule)


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
