"""The three networks of the acoustic model: text encoder, duration predictor and flow decoder.

Letters: B batch, L tokens, T frames, M mel channels, D width, C width of the condition.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from scipy.fft import dct

from xtts.shared.model_config import ModelConfig
from xtts.trainer.models.acoustic.alignment import duration_path, token_spans
from xtts.trainer.models.acoustic.decoder_blocks import AdaptiveNorm, CoarseLevel, DecoderBlock, apply_around, fold
from xtts.trainer.models.acoustic.recorded_voices import VoiceEmbedding
from xtts.trainer.models.layers import (
    Block,
    ConvolutionBlock,
    Initialization,
    TimeEmbedding,
    TransformerBlock,
    apply_mask,
    axis_size,
)
from xtts.trainer.models.random_numbers import fold_seed

POSITION_FEATURES = 4
_SHARPENING = 1.1
"""Gain of the post-filter: the higher coefficients of a decoder's cepstra are 15% smaller than those of recordings."""
_TILT, _DETAIL = 4, 12
"""Cepstral coefficients: the last that keeps its value, and the first with the whole gain."""


class Vocabularies(NamedTuple):
    """Number of values of each that a model knows: the rows of its embedding tables."""

    tokens: int
    speakers: int = 1
    languages: int = 1


class Conditioning(NamedTuple):
    """Conditioning of a batch; a model reads only the parts that it has a table or a layer for."""

    speaker: tf.Tensor | None = None
    """int32[B], row of the speaker table."""
    language: tf.Tensor | None = None
    """int32[B], row of the language table."""
    voice: tf.Tensor | None = None
    """float32[B, 296], the voice of a recording."""


class TextEncoder(Block):
    """Encoder of tokens: embedding, convolutional pre-net, Transformer blocks."""

    def __init__(self, config: ModelConfig, vocabularies: Vocabularies, initial: Initialization) -> None:
        super().__init__(initial, "text_encoder")
        width, heads = config.text_width, config.text_heads
        normal = keras.initializers.RandomNormal(0.0, 0.5, seed=next(initial.seeds))
        embedding = keras.layers.Embedding(vocabularies.tokens, width, normal, dtype=initial.dtype, name="tokens")
        self.embedding = self.add_layer(embedding, None)
        self.speaker = self.add_table(vocabularies.speakers, width, "speakers")
        self.language = self.add_table(vocabularies.languages, width, "languages")
        kernel, expansion, rate = config.prenet_kernel, config.text_expansion, config.dropout
        self.prenet = self.add_layers(
            ConvolutionBlock(width, width, kernel, rate, initial, f"prenet_{i}") for i in range(config.prenet_layers)
        )
        self.blocks = self.add_layers(
            TransformerBlock(width, heads, expansion, rate, initial, f"block_{i}") for i in range(config.text_blocks)
        )
        self.voice = None
        if config.voice_from == "recording":
            self.voice = self.add_layer(VoiceEmbedding(width, initial))
        self.norm = self.add_norm(width, "norm")

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
            x += self.voice(conditioning.voice)[:, tf.newaxis]
        for i, block in enumerate(self.blocks, len(self.prenet)):
            x = block(x, valid, fold_seed(seed, i))
        return apply_mask(self.norm(x), valid)


class DurationPredictor(Block):
    """Predictor of the natural log of each token's frames from its encoding (Glow-TTS, section 3.3)."""

    def __init__(self, config: ModelConfig, initial: Initialization) -> None:
        super().__init__(initial, "duration_predictor")
        kernel, rate = config.duration_kernel, config.duration_dropout
        widths = [config.text_width] + [config.duration_width] * config.duration_layers
        self.blocks = self.add_layers(
            ConvolutionBlock(width, out, kernel, rate, initial, f"convolution_{i}")
            for i, (width, out) in enumerate(itertools.pairwise(widths))
        )
        # Starts at five frames per token (LJSpeech: six per character): far from there the deviance is steep.
        bias = keras.initializers.Constant(math.log(5.0))
        self.output_projection = self.add_dense(
            config.duration_width,
            1,
            "output_projection",
            kernel_initializer="zeros",
            bias_initializer=bias,
            dtype="float32",
        )

    def call(self, encodings: tf.Tensor, valid: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """encodings: [B, L, D], valid: bool[B, L, 1] -> float32[B, L], natural log of frames."""
        x = encodings
        for i, block in enumerate(self.blocks):
            x = block(x, valid, fold_seed(seed, i))
        return self.output_projection(x)[..., 0]


def position_features(first: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Features of each frame's position in its token and of the token's duration; zero for a frame without a token.

    first, lengths: int32[B, T], first frame and number of frames of the token -> float32[B, T, 4]
    """
    # Without them the decoder could infer the position only from changes between tokens.
    length = tf.cast(tf.maximum(lengths, 1), tf.float32)
    angle = math.pi * (tf.cast(tf.range(axis_size(first, 1)) - first, tf.float32) + 0.5) / length
    features = tf.stack([tf.cos(angle), tf.sin(angle), tf.cos(2.0 * angle), tf.math.log(length)], axis=-1)
    return tf.where(lengths[..., tf.newaxis] > 0, features, 0.0)


class AlignedText(NamedTuple):
    """Projections of the text, aligned to the frames: input of the decoder."""

    fine: tf.Tensor
    """[B, T, D], of each frame."""
    coarse: tf.Tensor
    """[B, T / rate, D of the first level], means of the frames that one of its positions stands for."""


class FlowDecoder(Block):
    """The vector field: ConvNeXt blocks over frames, conditioned on the text per frame and on the time per clip."""

    def __init__(
        self, config: ModelConfig, mel_channels: int, vocabularies: Vocabularies, initial: Initialization
    ) -> None:
        super().__init__(initial, "decoder")
        width, self.width, self.mel_channels = config.decoder_width, config.decoder_width, mel_channels
        condition = max([width, *(level.width for level in config.decoder_levels)])
        # What the coarse level needs to know of the text does not have to pass through the narrow blocks.
        coarse_width = config.decoder_levels[0].width if config.decoder_levels else 0
        self.noisy_projection = self.add_dense(mel_channels, width, "noisy_projection", use_bias=False)
        text_channels, text_width = mel_channels + config.text_width, width + coarse_width
        self.text_projection = self.add_dense(text_channels, text_width, "text_projection")
        # Named as in stored weights.
        self.position_projection = self.add_dense(POSITION_FEATURES, width, "place_projection", use_bias=False)
        self.time_embedding = self.add_layer(TimeEmbedding(condition, initial))
        self.speaker = self.add_table(vocabularies.speakers, condition, "speakers")
        self.language = self.add_table(vocabularies.languages, condition, "languages")
        self.voice = None
        if config.voice_from == "recording":
            self.voice = self.add_layer(VoiceEmbedding(condition, initial))
        kernel, expansion = config.decoder_kernel, config.decoder_expansion
        self.blocks = self.add_layers(
            DecoderBlock(width, kernel, expansion, condition, initial, f"block_{i}")
            for i in range(config.decoder_blocks)
        )
        self.coarse = None
        if config.decoder_levels:
            self.coarse = self.add_layer(CoarseLevel(config, 0, width, condition, initial))
        zeros = {"kernel_initializer": "zeros", "dtype": "float32"}
        self.noisy_skip = self.add_dense(condition, mel_channels, "noisy_skip", **zeros)
        self.norm = self.add_layer(AdaptiveNorm(width, condition, initial, gated=False))
        self.output_projection = self.add_dense(width, mel_channels, "output_projection", **zeros)

    def regulate_length(
        self, encodings: tf.Tensor, mean: tf.Tensor, durations: tf.Tensor, frames: int | tf.Tensor
    ) -> tuple[tf.Tensor, AlignedText]:
        """Repeat the mean and the encoding of each token over its frames, T = frames; zero in frames without a token.

        encodings: [B, L, D], mean: float32[B, L, M], durations: int32[B, L] -> float32[B, T, M] and the text
        """
        text = self.text_projection(tf.concat([tf.cast(mean, encodings.dtype), encodings], axis=-1))
        values = tf.concat([mean, tf.cast(text, tf.float32)], axis=-1)
        repeated = tf.matmul(duration_path(durations, frames), values)
        aligned, fine, coarse = tf.split(repeated, [self.mel_channels, self.width, -1], axis=-1)
        positions = self.position_projection(position_features(*token_spans(durations, frames)))
        fine, coarse = tf.cast(fine, encodings.dtype) + positions, tf.cast(coarse, encodings.dtype)
        if self.coarse is not None:
            coarse = tf.reduce_mean(fold(coarse, self.coarse.rate), axis=2)
        return aligned, AlignedText(fine, coarse)

    def condition(self, time: tf.Tensor, conditioning: Conditioning) -> tf.Tensor:
        """Condition of the adaptive norms: time float32[B] in 0..1 -> [B, C]; float32[N, 1] -> [N, B, C]."""
        condition = self.time_embedding(time)
        if self.speaker is not None:
            condition += self.speaker(conditioning.speaker)
        if self.language is not None:
            condition += self.language(conditioning.language)
        if self.voice is not None:
            condition += self.voice(conditioning.voice)
        return tf.nn.silu(condition)

    def call(self, noisy: tf.Tensor, text: AlignedText, valid: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
        """noisy: [B, T, M], valid: bool[B, T, 1], condition: [B, C] -> float32[B, T, M]."""
        # The projection of a concatenation is the sum of projections; the text's is computed per token.
        x = self.noisy_projection(noisy) + text.fine
        x = apply_around(self.coarse, self.blocks, x, valid, condition, text.coarse)
        field = self.output_projection(self.norm(x, condition)[0])
        # The field subtracts the noise, channel by channel: more than narrow blocks can carry. So a share of the input,
        # which depends on the time, is added past them (c_skip of Karras et al., 2206.00364, section 5).
        return field + tf.expand_dims(self.noisy_skip(condition), 1) * tf.cast(noisy, tf.float32)


def solve(field: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], start: tf.Tensor, schedule: tf.Tensor) -> tf.Tensor:
    """Solve dx/dt = f(x, t) from x = `start` at time 0: return x at time 1.

    field: f by x and the number of the evaluation, int32[], whose t is in the schedule. schedule: float32[N, 3], see
    `sampling_schedule`; N may be unknown in an exported graph.
    """
    evaluations = axis_size(schedule, 0)

    def advance(i: tf.Tensor, x: tf.Tensor, point: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        _, step, further = tf.unstack(tf.gather(schedule, i))
        slope = field(point, i)
        x += step * slope
        return i + 1, x, x + further * slope

    _, end, _ = tf.while_loop(lambda i, *_: i < evaluations, advance, (0, start, start), maximum_iterations=evaluations)
    return end


def postfilter(channels: int) -> np.ndarray:
    """Return the matrix P, float32[M, M], that sharpens a log-mel float32[..., M] as `mel @ P`.

    It multiplies the higher coefficients of each frame's cepstrum (DCT-II of the log-mel), as the post-filter of
    Yoshimura et al. (2005, "Incorporating a mixed excitation model and postfilter into HMM-based text-to-speech
    synthesis") does with a mel-cepstrum.
    """
    gains = 1.0 + (_SHARPENING - 1.0) * np.clip((np.arange(channels) - _TILT) / (_DETAIL - _TILT), 0.0, 1.0)
    cosines = dct(np.eye(channels), axis=0, norm="ortho")
    return np.asarray(cosines.T @ (gains[:, np.newaxis] * cosines), np.float32)
