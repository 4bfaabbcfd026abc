"""The voice of a recording as a fixed number of latents: a convolutional encoder and a Perceiver resampler.

As in XTTS (arXiv 2406.04904). Vocal tract length perturbation makes voices that the corpus lacks of those it has
(Jaitly and Hinton, ICML 2013): all frequencies of a clip times one factor sound like a shorter or longer vocal tract,
with a higher or lower pitch.

Letters: B batch, L tokens, T frames, F frames of a crop, M mel channels, N latents, D width, K factors.
"""

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from xtts.shared.model_config import ModelConfig
from xtts.trainer.model.layers import (
    ConvolutionBlock,
    LayerNorm,
    Seeds,
    apply_mask,
    attention_logits,
    axis_size,
    glorot,
    length_mask,
)
from xtts.trainer.model.random_numbers import fold_seed, random_uniform

_FACTORS = 16
"""K: half of them raise the frequencies, half of them lower them."""
_SHARE = 0.5
"""Of the speakers of a batch; the others keep their voice."""


class CrossAttention(keras.layers.Layer):  # type: ignore[misc]
    """Pre-norm multi-head attention from one sequence to another, without positions."""

    def __init__(
        self, width: int, memory_width: int, heads: int, seeds: Seeds, *, dtype: keras.DTypePolicy, name: str
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        self.width, self.memory_width, self.heads = width, memory_width, heads
        self.norm = LayerNorm(dtype=dtype, name="norm")
        self.query = keras.layers.Dense(
            width, use_bias=False, kernel_initializer=glorot(seeds), dtype=dtype, name="query"
        )
        self.memory = keras.layers.Dense(
            2 * width, use_bias=False, kernel_initializer=glorot(seeds), dtype=dtype, name="memory"
        )
        self.output_projection = keras.layers.Dense(
            width, kernel_initializer=glorot(seeds), dtype=dtype, name="output_projection"
        )

    def build(self) -> None:
        """Create the weights."""
        self.norm.build((None, self.width))
        self.query.build((None, self.width))
        self.memory.build((None, self.memory_width))
        self.output_projection.build((None, self.width))

    def call(self, x: tf.Tensor, memory: tf.Tensor, valid: tf.Tensor | None = None) -> tf.Tensor:
        """x: [B, L, D], memory: [B, N, D'], valid: bool[B, N, 1], unmasked part of memory -> [B, L, D]."""
        query = self._split(self.query(self.norm(x)), 1)[0]
        key, value = self._split(self.memory(memory), 2)
        scores = attention_logits(query, key)
        if valid is not None:
            # Finite, so that a recording of no frames gets a uniform softmax and not NaN.
            scores += tf.where(tf.transpose(valid, [0, 2, 1])[:, tf.newaxis], 0.0, -1e9)
        mixed = tf.matmul(tf.cast(tf.nn.softmax(scores), value.dtype), value)
        joined = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [axis_size(x, 0), -1, self.width])
        return self.output_projection(joined)

    def _split(self, x: tf.Tensor, parts: int) -> list[tf.Tensor]:
        """[B, N, parts D] -> [B, heads, N, D / heads], `parts` of them."""
        heads = tf.reshape(x, [axis_size(x, 0), -1, parts, self.heads, self.width // self.heads])
        split: list[tf.Tensor] = tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]))
        return split


class ResamplerBlock(keras.layers.Layer):  # type: ignore[misc]
    """Cross-attention from latents to a recording, then a two-layer perceptron (Perceiver, 2103.03206, 3.1)."""

    def __init__(
        self, width: int, heads: int, expansion: int, seeds: Seeds, *, dtype: keras.DTypePolicy, name: str
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        self.width, self.hidden = width, expansion * width
        self.attention = CrossAttention(width, width, heads, seeds, dtype=dtype, name="attention")
        self.ffn_norm = LayerNorm(dtype=dtype, name="ffn_norm")
        self.ffn_in = keras.layers.Dense(self.hidden, kernel_initializer=glorot(seeds), dtype=dtype, name="ffn_in")
        self.ffn_out = keras.layers.Dense(width, kernel_initializer=glorot(seeds), dtype=dtype, name="ffn_out")

    def build(self) -> None:
        """Create the weights."""
        for layer in (self.ffn_norm, self.ffn_in):
            layer.build((None, self.width))
        self.attention.build()
        self.ffn_out.build((None, self.hidden))

    def call(self, latents: tf.Tensor, memory: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """latents: [B, N, D], memory: [B, F, D], valid: bool[B, F, 1] -> [B, N, D]."""
        latents += self.attention(latents, memory, valid)
        return latents + self.ffn_out(tf.nn.gelu(self.ffn_in(self.ffn_norm(latents)), approximate=True))


class ReferenceEncoder(keras.layers.Layer):  # type: ignore[misc]
    """Encodes a crop of a mel as N latents, which keep the sound of the voice but not the order of what was said."""

    def __init__(self, config: ModelConfig, mel_channels: int, seeds: Seeds, *, dtype: keras.DTypePolicy) -> None:
        super().__init__(dtype=dtype, name="reference")
        width, self.width = config.voice_width, config.voice_width
        self.latents, self.mel_channels, self.most_frames = config.voice_latents, mel_channels, config.voice_frames
        self.input_projection = keras.layers.Dense(
            width, kernel_initializer=glorot(seeds), dtype=dtype, name="input_projection"
        )
        self.convolutions = [
            ConvolutionBlock(
                width, width, config.voice_kernel, config.dropout, seeds, dtype=dtype, name=f"convolution_{i}"
            )
            for i in range(config.voice_layers)
        ]
        self.heard_norm = LayerNorm(dtype=dtype, name="heard_norm")
        self.start = keras.initializers.RandomNormal(0.0, 1.0, seed=next(seeds))
        self.blocks = [
            ResamplerBlock(width, config.voice_heads, config.voice_expansion, seeds, dtype=dtype, name=f"resampler_{i}")
            for i in range(config.voice_blocks)
        ]
        self.norm = LayerNorm(dtype=dtype, name="norm")

    def build(self) -> None:
        """Create the weights."""
        self.input_projection.build((None, self.mel_channels))
        blocks: list[keras.layers.Layer] = [*self.convolutions, *self.blocks]
        for block in blocks:
            block.build()
        self.heard_norm.build((None, self.width))
        self.queries = self.add_weight(shape=(self.latents, self.width), initializer=self.start, name="queries")
        self.norm.build((None, self.width))

    def call(self, mel: tf.Tensor, valid: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """mel: float32[B, F, M], normalised, valid: bool[B, F, 1], seed: int32[2] | None -> [B, N, D]."""
        x = self.input_projection(apply_mask(mel, valid))
        for i, block in enumerate(self.convolutions):
            x = block(x, valid, fold_seed(seed, i))
        memory = self.heard_norm(apply_mask(x, valid))
        # Not tf.broadcast_to: its gradient has no static shape.
        latents = tf.tile(tf.convert_to_tensor(self.queries)[tf.newaxis], [mel.shape[0], 1, 1])
        for block in self.blocks:
            latents = block(latents, memory, valid)
        return self.norm(latents)

    def encode_crops(
        self, mel: tf.Tensor, mel_length: tf.Tensor, speaker: tf.Tensor | None, seed: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(voice of each clip of a batch [B, N, D], leaked frames bool[B, T, 1] as in `References`).

        mel: float32[B, T, M], normalised; the others as in `choose_references`.
        """
        chosen = choose_references(mel, mel_length, speaker, self.most_frames, fold_seed(seed, 0))
        voice = self(chosen.mel, length_mask(chosen.length, chosen.mel.shape[1]), fold_seed(seed, 1))
        return voice, chosen.leaked


class Crop(NamedTuple):
    """A part of each clip."""

    mel: tf.Tensor
    """[B, F, M], zero after its end."""
    start: tf.Tensor
    """int32[B], its first frame in the clip."""
    length: tf.Tensor
    """int32[B]."""


class References(NamedTuple):
    """The crop that each clip takes its voice from."""

    mel: tf.Tensor
    """[B, F, M], a crop of this or of another clip, zero after its end."""
    length: tf.Tensor
    """int32[B]."""
    leaked: tf.Tensor
    """bool[B, T, 1], true inside the crop of a clip that is its own reference: the latents leak these frames."""


def crop_length(mel_length: tf.Tensor, most_frames: int) -> tf.Tensor:
    """int32[B] -> int32[B]: at most half of the clip, so that enough is left to train on if the crop is its own."""
    return tf.minimum(mel_length // 2, most_frames)


def crop_reference(mel: tf.Tensor, mel_length: tf.Tensor, most_frames: int, seed: tf.Tensor | None) -> Crop:
    """A crop of each clip: at a random position drawn from `seed`, in the middle without one.

    mel: [B, T, M], mel_length: int32[B], seed: int32[2] | None.
    """
    length = crop_length(mel_length, most_frames)
    room = mel_length - length
    place = tf.fill(room.shape, 0.5) if seed is None else tf.random.stateless_uniform(room.shape, seed, alg="philox")
    start = tf.minimum(tf.cast(place * tf.cast(room + 1, tf.float32), tf.int32), room)
    # At most half the padded length, so that a short bucket does not pay for long crops.
    frames = max(min(most_frames, mel.shape[1] // 2), 1)
    places = tf.minimum(start[:, tf.newaxis] + tf.range(frames), mel.shape[1] - 1)
    crop = tf.gather(mel, places, batch_dims=1)
    return Crop(apply_mask(crop, length_mask(length, frames)), start, length)


def choose_references(
    mel: tf.Tensor, mel_length: tf.Tensor, speaker: tf.Tensor | None, most_frames: int, seed: tf.Tensor | None
) -> References:
    """A crop of another clip of the same speaker, drawn from `seed`; of the clip itself if the batch has no other.

    mel: [B, T, M], mel_length: int32[B], speaker: int32[B], None for a single speaker, seed: int32[2] | None.
    Without a seed it is the middle of the next clip of the speaker, as a voice is spoken in: validation batches are the
    same every time.
    """
    crop, frame = crop_reference(mel, mel_length, most_frames, fold_seed(seed, 0)), tf.range(mel.shape[1])
    start = crop.start[:, tf.newaxis]
    inside = (start <= frame) & (frame < start + crop.length[:, tf.newaxis])
    others = other_clips(mel_length, speaker)
    if seed is None:
        rows = tf.range(others.shape[0])
        draws = 1.0 / tf.cast(1 + (rows - rows[:, tf.newaxis]) % others.shape[0], tf.float32)  # the sooner the larger
    else:
        draws = tf.random.stateless_uniform(others.shape, fold_seed(seed, 1), alg="philox")
    drawn = tf.argmax(tf.where(others, draws, -1.0), axis=1, output_type=tf.int32)
    alone = ~tf.reduce_any(others, axis=1)
    row = tf.where(alone, tf.range(alone.shape[0]), drawn)
    leaked = (inside & alone[:, tf.newaxis])[..., tf.newaxis]
    return References(tf.gather(crop.mel, row), tf.gather(crop.length, row), leaked)


def other_clips(mel_length: tf.Tensor, speaker: tf.Tensor | None) -> tf.Tensor:
    """Which clips (last axis) can be a clip's reference: int32[..., B], int32[..., B] | None -> bool[..., B, B].

    Those of its speaker with a crop. Clips of the same length are excluded, since they may be the same clip: a batch
    across the end of an epoch can hold a clip twice.
    """
    here, there = mel_length[..., :, tf.newaxis], mel_length[..., tf.newaxis, :]
    others = (here != there) & (crop_length(there, 1) > 0)
    return others if speaker is None else others & (speaker[..., :, tf.newaxis] == speaker[..., tf.newaxis, :])


def leaked_frame_count(
    mel_length: tf.Tensor, speaker: tf.Tensor | None, most_frames: int, micro_batches: int
) -> tf.Tensor:
    """Number of `leaked` frames of a batch, int32[], that `choose_references` gets in `micro_batches` equal parts.

    mel_length: int32[B], speaker: int32[B] | None.
    """
    length = crop_length(mel_length, most_frames)
    parts = [part if part is None else tf.reshape(part, [micro_batches, -1]) for part in (mel_length, speaker)]
    alone = ~tf.reduce_any(other_clips(*parts), axis=-1)
    return tf.reduce_sum(tf.where(tf.reshape(alone, length.shape), length, 0))


def warping_matrices(hertz: np.ndarray, most: float) -> np.ndarray:
    """Matrices that multiply the frequencies of a mel by factors from 1 / (1 + most) to 1 + most: float32[K, M, M].

    hertz: float64[M], rising, the centre of each channel. A row has the weights of a cubic convolution (Keys 1981,
    a = -1/2) between the channels around the frequency that is moved to its channel; they sum to 1. Above the highest
    channel, and below the lowest, the outermost is repeated.
    """
    channels = len(hertz)
    exponents = np.linspace(-1.0, 1.0, _FACTORS)
    sources = np.interp(hertz / (1.0 + most) ** exponents[:, None], hertz, np.arange(channels))
    left = np.floor(sources).astype(np.int64)
    part = (sources - left)[..., None]
    weights = _cubic(part - np.arange(-1, 3))
    taps = np.clip(left[..., None] + np.arange(-1, 3), 0, channels - 1)
    matrices: np.ndarray = np.einsum("kit,kitj->kij", weights, np.eye(channels)[taps])
    return matrices.astype(np.float32)


def _cubic(distance: np.ndarray) -> np.ndarray:
    x = np.abs(distance)
    near, far = (1.5 * x - 2.5) * x**2 + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x <= 1.0, near, np.where(x < 2.0, far, 0.0))


def perturb_vocal_tracts(mel: tf.Tensor, speaker: tf.Tensor | None, matrices: np.ndarray, seed: tf.Tensor) -> tf.Tensor:
    """Another voice for about half of the speakers of a batch: float32[B, T, M].

    mel: float32[B, T, M], normalised, zero outside the clip; speaker: int32[B], None for one speaker;
    matrices: float32[K, M, M]; seed: int32[2]. Clips of one speaker get the same factor, since they may be each
    other's reference.
    """
    who = tf.zeros([mel.shape[0]], tf.int32) if speaker is None else speaker
    place = tf.cast(random_uniform(fold_seed(seed, 0), who) * len(matrices), tf.int32)
    moved = tf.matmul(mel, tf.gather(tf.constant(matrices), place), transpose_b=True)
    chosen = random_uniform(fold_seed(seed, 1), who) < _SHARE
    return tf.where(chosen[:, tf.newaxis, tf.newaxis], moved, mel)
