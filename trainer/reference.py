"""The voice of a recording as a fixed set of latents: a convolutional encoder, and queries that resample what it hears.

In the line of XTTS (arXiv 2406.04904): a Perceiver resampler over a mel. Letters: B batch, L tokens, T frames, F frames
of a crop, M mel channels, N latents, D width.
"""

import keras
import tensorflow as tf

from xtts.shared.config import ModelConfig
from xtts.trainer.layers import (
    ConvolutionBlock,
    Seeds,
    attention_logits,
    fold_seed,
    glorot,
    keep_valid,
    length_mask,
)


class CrossAttention(keras.layers.Layer):  # type: ignore[misc]
    """Pre-norm multi-head attention from one sequence to another, without positions."""

    def __init__(
        self, width: int, memory_width: int, heads: int, seeds: Seeds, *, dtype: keras.DTypePolicy, name: str
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        self.width, self.memory_width, self.heads = width, memory_width, heads
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype, name="norm")
        self.query = keras.layers.Dense(
            width, use_bias=False, kernel_initializer=glorot(seeds), dtype=dtype, name="query"
        )
        self.memory = keras.layers.Dense(
            2 * width, use_bias=False, kernel_initializer=glorot(seeds), dtype=dtype, name="memory"
        )
        self.outward = keras.layers.Dense(width, kernel_initializer=glorot(seeds), dtype=dtype, name="outward")

    def build(self) -> None:
        """Create the weights."""
        self.norm.build((None, self.width))
        self.query.build((None, self.width))
        self.memory.build((None, self.memory_width))
        self.outward.build((None, self.width))

    def call(self, x: tf.Tensor, memory: tf.Tensor, valid: tf.Tensor | None = None) -> tf.Tensor:
        """x: [B, L, D], memory: [B, N, D'], valid: bool[B, N, 1], what of the memory counts -> [B, L, D]."""
        query = self._split(self.query(self.norm(x)), 1)[0]
        key, value = self._split(self.memory(memory), 2)
        scores = attention_logits(query, key)
        if valid is not None:
            # Finite, so that a recording of no frames gets an even softmax and not NaN.
            scores += tf.where(tf.transpose(valid, [0, 2, 1])[:, tf.newaxis], 0.0, -1e9)
        mixed = tf.matmul(tf.cast(tf.nn.softmax(scores), value.dtype), value)
        return self.outward(tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, x.shape[1], self.width]))

    def _split(self, x: tf.Tensor, parts: int) -> list[tf.Tensor]:
        """[B, N, parts D] -> [B, heads, N, D / heads], `parts` of them."""
        heads = tf.reshape(x, [-1, x.shape[1], parts, self.heads, self.width // self.heads])
        split: list[tf.Tensor] = tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]))
        return split


class ResamplerBlock(keras.layers.Layer):  # type: ignore[misc]
    """Latents that look at a recording, then a two-layer perceptron (Perceiver, 2103.03206, section 3.1)."""

    def __init__(
        self, width: int, heads: int, expansion: int, seeds: Seeds, *, dtype: keras.DTypePolicy, name: str
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        self.width, self.hidden = width, expansion * width
        self.attention = CrossAttention(width, width, heads, seeds, dtype=dtype, name="attention")
        self.widen_norm = keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype, name="widen_norm")
        self.widen = keras.layers.Dense(self.hidden, kernel_initializer=glorot(seeds), dtype=dtype, name="widen")
        self.narrow = keras.layers.Dense(width, kernel_initializer=glorot(seeds), dtype=dtype, name="narrow")

    def build(self) -> None:
        """Create the weights."""
        for layer in (self.widen_norm, self.widen):
            layer.build((None, self.width))
        self.attention.build()
        self.narrow.build((None, self.hidden))

    def call(self, latents: tf.Tensor, heard: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """latents: [B, N, D], heard: [B, F, D], valid: bool[B, F, 1] -> [B, N, D]."""
        latents += self.attention(latents, heard, valid)
        return latents + self.narrow(tf.nn.gelu(self.widen(self.widen_norm(latents)), approximate=True))


class ReferenceEncoder(keras.layers.Layer):  # type: ignore[misc]
    """A crop of a mel to N latents; the order of what was said is lost, the sound of it is not."""

    def __init__(self, config: ModelConfig, mel_channels: int, seeds: Seeds, *, dtype: keras.DTypePolicy) -> None:
        super().__init__(dtype=dtype, name="reference")
        width, self.width = config.voice_width, config.voice_width
        self.latents, self.mel_channels, self.most_frames = config.voice_latents, mel_channels, config.voice_frames
        self.inward = keras.layers.Dense(width, kernel_initializer=glorot(seeds), dtype=dtype, name="inward")
        self.convolutions = [
            ConvolutionBlock(
                width, width, config.voice_kernel, config.dropout, seeds, dtype=dtype, name=f"convolution_{i}"
            )
            for i in range(config.voice_layers)
        ]
        self.heard_norm = keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype, name="heard_norm")
        self.start = keras.initializers.RandomNormal(0.0, 1.0, seed=next(seeds))
        self.blocks = [
            ResamplerBlock(width, config.voice_heads, config.voice_expansion, seeds, dtype=dtype, name=f"resampler_{i}")
            for i in range(config.voice_blocks)
        ]
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype, name="norm")

    def build(self) -> None:
        """Create the weights."""
        self.inward.build((None, self.mel_channels))
        blocks: list[keras.layers.Layer] = [*self.convolutions, *self.blocks]
        for block in blocks:
            block.build()
        self.heard_norm.build((None, self.width))
        self.queries = self.add_weight(shape=(self.latents, self.width), initializer=self.start, name="queries")
        self.norm.build((None, self.width))

    def call(self, mel: tf.Tensor, valid: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """mel: float32[B, F, M], normalised, valid: bool[B, F, 1], seed: int32[2] | None -> [B, N, D]."""
        x = self.inward(keep_valid(mel, valid))
        for i, block in enumerate(self.convolutions):
            x = block(x, valid, fold_seed(seed, i))
        heard = self.heard_norm(keep_valid(x, valid))
        # Not tf.broadcast_to, whose gradient has shapes that no graph knows beforehand.
        latents = tf.tile(tf.convert_to_tensor(self.queries)[tf.newaxis], [mel.shape[0], 1, 1])
        for block in self.blocks:
            latents = block(latents, heard, valid)
        return self.norm(latents)


def crop_reference(
    mel: tf.Tensor, mel_length: tf.Tensor, most_frames: int, seed: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """(crop float32[B, F, M], its length int32[B]) of each clip: at a place drawn by `seed`, in the middle without one.

    mel: float32[B, T, M], mel_length: int32[B], seed: int32[2] | None. A crop is at most half of its clip: from the
    whole clip the latents could tell what is said in it, not how.
    """
    length = tf.minimum(mel_length // 2, most_frames)
    room = mel_length - length
    place = tf.fill(room.shape, 0.5) if seed is None else tf.random.stateless_uniform(room.shape, seed, alg="philox")
    start = tf.cast(place * tf.cast(room + 1, tf.float32), tf.int32)
    # No crop is longer than half the shape, so that a short bucket pays for no more.
    frames = max(min(most_frames, mel.shape[1] // 2), 1)
    places = tf.minimum(tf.minimum(start, room)[:, tf.newaxis] + tf.range(frames), mel.shape[1] - 1)
    crop = tf.gather(mel, places, batch_dims=1)
    return keep_valid(crop, length_mask(length, frames)), length
