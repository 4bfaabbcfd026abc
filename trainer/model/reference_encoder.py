"""The voice of a recording as a fixed number of latents: a convolutional encoder and a Perceiver resampler.

As in XTTS (arXiv 2406.04904). Vocal tract length perturbation (Jaitly and Hinton, ICML 2013) makes new voices from
those of the corpus: a clip with all frequencies multiplied by one factor sounds like a shorter or longer vocal tract,
with a higher or lower pitch.

Letters: B batch, L tokens, T frames, F frames of a crop, M mel channels, N latents, D width, K factors.
"""

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from xtts.shared.model_config import ModelConfig
from xtts.trainer.model.layers import (
    Block,
    ConvolutionBlock,
    Initialization,
    apply_mask,
    attend,
    length_mask,
    split_heads,
)
from xtts.trainer.model.random_numbers import fold_seed, random_uniform

_FACTORS = 16
"""K: half of the factors raise the frequencies, half lower them."""
_PERTURBED_SHARE = 0.5
"""Share of the speakers of a batch that get another voice."""


class CrossAttention(Block):
    """Pre-norm multi-head attention from one sequence to another, without positions."""

    def __init__(self, width: int, memory_width: int, heads: int, initial: Initialization, name: str) -> None:
        super().__init__(initial, name)
        self.heads = heads
        self.norm = self.add_norm(width, "norm")
        self.query = self.add_dense(width, width, "query", use_bias=False)
        self.memory = self.add_dense(memory_width, 2 * width, "memory", use_bias=False)
        self.output_projection = self.add_dense(width, width, "output_projection")

    def call(self, x: tf.Tensor, memory: tf.Tensor, valid: tf.Tensor | None = None) -> tf.Tensor:
        """x: [B, L, D], memory: [B, N, D'], valid: bool[B, N, 1], true where memory counts -> [B, L, D]."""
        (query,) = split_heads(self.query(self.norm(x)), 1, self.heads)
        key, value = split_heads(self.memory(memory), 2, self.heads)
        return self.output_projection(attend(query, key, value, valid))


class ResamplerBlock(Block):
    """Cross-attention from latents to a recording, then a two-layer perceptron (Perceiver, 2103.03206, 3.1)."""

    def __init__(self, width: int, heads: int, expansion: int, initial: Initialization, name: str) -> None:
        super().__init__(initial, name)
        self.attention = self.add_layer(CrossAttention(width, width, heads, initial, "attention"))
        self.ffn_norm = self.add_norm(width, "ffn_norm")
        self.ffn_in = self.add_dense(width, expansion * width, "ffn_in")
        self.ffn_out = self.add_dense(expansion * width, width, "ffn_out")

    def call(self, latents: tf.Tensor, memory: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """latents: [B, N, D], memory: [B, F, D], valid: bool[B, F, 1] -> [B, N, D]."""
        latents += self.attention(latents, memory, valid)
        return latents + self.ffn_out(tf.nn.gelu(self.ffn_in(self.ffn_norm(latents)), approximate=True))


class ReferenceEncoder(Block):
    """Encoder of a crop of a mel into N latents, which keep the sound of the voice but not the order of the words."""

    def __init__(self, config: ModelConfig, mel_channels: int, initial: Initialization) -> None:
        super().__init__(initial, "reference")
        width, kernel, heads = config.voice_width, config.voice_kernel, config.voice_heads
        self.most_frames, self.queries_shape = config.voice_frames, (config.voice_latents, width)
        self.input_projection = self.add_dense(mel_channels, width, "input_projection")
        self.convolutions = self.add_layers(
            ConvolutionBlock(width, width, kernel, config.dropout, initial, f"convolution_{i}")
            for i in range(config.voice_layers)
        )
        self.memory_norm = self.add_norm(width, "heard_norm")  # named as in stored weights
        self.queries_initializer = keras.initializers.RandomNormal(0.0, 1.0, seed=next(initial.seeds))
        self.blocks = self.add_layers(
            ResamplerBlock(width, heads, config.voice_expansion, initial, f"resampler_{i}")
            for i in range(config.voice_blocks)
        )
        self.norm = self.add_norm(width, "norm")

    def build(self) -> None:
        """Create the weights."""
        super().build()
        self.queries = self.add_weight(shape=self.queries_shape, initializer=self.queries_initializer, name="queries")

    def call(self, mel: tf.Tensor, valid: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """mel: float32[B, F, M], normalised, valid: bool[B, F, 1], seed: int32[2] | None -> [B, N, D]."""
        x = self.input_projection(apply_mask(mel, valid))
        for i, block in enumerate(self.convolutions):
            x = block(x, valid, fold_seed(seed, i))
        memory = self.memory_norm(apply_mask(x, valid))
        # Not tf.broadcast_to: its gradient has no static shape.
        latents = tf.tile(tf.convert_to_tensor(self.queries)[tf.newaxis], [mel.shape[0], 1, 1])
        for block in self.blocks:
            latents = block(latents, memory, valid)
        return self.norm(latents)

    def encode_crops(
        self, mel: tf.Tensor, mel_length: tf.Tensor, speaker: tf.Tensor, seed: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Encode a reference for each clip: (voices [B, N, D], leaked frames bool[B, T, 1]).

        mel: float32[B, T, M], normalised; the other arguments as in `choose_references`.
        """
        crops, length, leaked = choose_references(mel, mel_length, speaker, self.most_frames, fold_seed(seed, 0))
        return self(crops, length_mask(length, crops.shape[1]), fold_seed(seed, 1)), leaked


class Crop(NamedTuple):
    """A crop of each clip of a batch."""

    mel: tf.Tensor
    """[B, F, M], zero after the end of the crop."""
    start: tf.Tensor
    """int32[B], first frame of the crop in its clip."""
    length: tf.Tensor
    """int32[B]."""


def crop_length(mel_length: tf.Tensor, most_frames: int) -> tf.Tensor:
    """Frames of a crop: at most half of the clip, so that enough is left to train on if it is its own reference."""
    return tf.minimum(mel_length // 2, most_frames)


def crop_reference(mel: tf.Tensor, mel_length: tf.Tensor, most_frames: int, seed: tf.Tensor | None) -> Crop:
    """Crop each clip: at a random position drawn from `seed`, or in the middle without a seed.

    mel: [B, T, M], mel_length: int32[B], seed: int32[2] | None.
    """
    length = crop_length(mel_length, most_frames)
    room = mel_length - length
    draw = tf.fill(room.shape, 0.5) if seed is None else tf.random.stateless_uniform(room.shape, seed, alg="philox")
    start = tf.minimum(tf.cast(draw * tf.cast(room + 1, tf.float32), tf.int32), room)
    # At most half the padded length, so that a short bucket does not pay for long crops.
    frames = max(min(most_frames, mel.shape[1] // 2), 1)
    indices = tf.minimum(start[:, tf.newaxis] + tf.range(frames), mel.shape[1] - 1)
    crop = tf.gather(mel, indices, batch_dims=1)
    return Crop(apply_mask(crop, length_mask(length, frames)), start, length)


def choose_references(
    mel: tf.Tensor, mel_length: tf.Tensor, speaker: tf.Tensor, most_frames: int, seed: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Choose a crop of another clip of the same speaker, drawn from `seed`; of the clip itself if there is no other.

    -> (crops [B, F, M], zero after their ends, their lengths int32[B], leaked bool[B, T, 1], true inside the crop of a
    clip that is its own reference: the latents leak these frames).
    mel: [B, T, M], mel_length: int32[B], speaker: int32[B], seed: int32[2] | None.
    Without a seed it is the middle of the speaker's next clip, so that validation is the same every time.
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
    return tf.gather(crop.mel, row), tf.gather(crop.length, row), leaked


def other_clips(mel_length: tf.Tensor, speaker: tf.Tensor) -> tf.Tensor:
    """Mask of the clips (last axis) that can be a clip's reference: int32[..., B], int32[..., B] -> [..., B, B].

    A reference has the same speaker and a crop of at least one frame. Clips of the same length are excluded, since they
    may be the same clip: a batch across the end of an epoch can hold a clip twice.
    """
    own_length, reference_length = mel_length[..., :, tf.newaxis], mel_length[..., tf.newaxis, :]
    same_speaker = speaker[..., :, tf.newaxis] == speaker[..., tf.newaxis, :]
    return (own_length != reference_length) & (crop_length(reference_length, 1) > 0) & same_speaker


def leaked_frame_count(mel_length: tf.Tensor, speaker: tf.Tensor, most_frames: int, micro_batches: int) -> tf.Tensor:
    """Count the `leaked` frames of a batch, int32[], that `choose_references` gets in `micro_batches` equal parts.

    mel_length, speaker: int32[B].
    """
    length = crop_length(mel_length, most_frames)
    split = [tf.reshape(x, [micro_batches, -1]) for x in (mel_length, speaker)]
    alone = ~tf.reduce_any(other_clips(*split), axis=-1)
    return tf.reduce_sum(tf.where(tf.reshape(alone, length.shape), length, 0))


def warping_matrices(hertz: np.ndarray, most: float) -> np.ndarray:
    """Matrices that multiply the frequencies of a mel by factors from 1 / (1 + most) to 1 + most: float32[K, M, M].

    hertz: float64[M], rising, the centre of each channel. A row of a matrix interpolates, by cubic convolution (Keys
    1981, a = -1/2), between the channels around the frequency that moves to its channel; its weights sum to 1. Beyond
    the lowest and the highest channel, the outermost is repeated.
    """
    channels = len(hertz)
    exponents = np.linspace(-1.0, 1.0, _FACTORS)
    sources = np.interp(hertz / (1.0 + most) ** exponents[:, None], hertz, np.arange(channels))
    left = np.floor(sources).astype(np.int64)
    fraction = (sources - left)[..., None]
    weights = _cubic(fraction - np.arange(-1, 3))
    taps = np.clip(left[..., None] + np.arange(-1, 3), 0, channels - 1)
    return np.asarray(np.einsum("kit,kitj->kij", weights, np.eye(channels)[taps]), np.float32)


def _cubic(distance: np.ndarray) -> np.ndarray:
    x = np.abs(distance)
    near, far = (1.5 * x - 2.5) * x**2 + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x <= 1.0, near, np.where(x < 2.0, far, 0.0))


def perturb_vocal_tracts(mel: tf.Tensor, speaker: tf.Tensor, matrices: np.ndarray, seed: tf.Tensor) -> tf.Tensor:
    """Give about half of the speakers of a batch another voice: float32[B, T, M].

    mel: float32[B, T, M], normalised, zero outside the clip; speaker: int32[B];
    matrices: float32[K, M, M]; seed: int32[2]. Clips of one speaker get the same factor, since they may be each
    other's reference.
    """
    factor = tf.cast(random_uniform(fold_seed(seed, 0), speaker) * len(matrices), tf.int32)
    warped = tf.matmul(mel, tf.gather(tf.constant(matrices), factor), transpose_b=True)
    perturbed = random_uniform(fold_seed(seed, 1), speaker) < _PERTURBED_SHARE
    return tf.where(perturbed[:, tf.newaxis, tf.newaxis], warped, mel)
