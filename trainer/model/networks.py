"""The three networks of the acoustic model: text encoder, duration predictor and flow decoder.

Letters: B batch, L tokens, T frames, M mel channels, D width.
"""

import itertools
import math

import keras
import tensorflow as tf

from xtts.shared.model_config import ModelConfig
from xtts.trainer.model.conditioning import Conditioning, Vocabularies
from xtts.trainer.model.layers import (
    ConvolutionBlock,
    Seeds,
    TransformerBlock,
    apply_mask,
    embedding_table,
)
from xtts.trainer.model.random_numbers import fold_seed
from xtts.trainer.model.reference_encoder import CrossAttention


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
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype, name="norm")

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
        self,
        tokens: tf.Tensor,
        valid: tf.Tensor,
        conditioning: Conditioning,
        seed: tf.Tensor | None,
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
                width, out, config.duration_kernel, config.dropout, seeds, dtype=dtype, name=f"convolution_{i}"
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
