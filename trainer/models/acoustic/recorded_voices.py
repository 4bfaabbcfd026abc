"""The voice of a recording: a speaker embedding as a condition, and the voices that a model learns it from.

As with the d-vectors of SV2TTS (Jia et al., 1806.04558): an encoder that was trained to tell thousands of people apart
describes a voice, so that few people suffice to train a model. Vocal tract length perturbation makes new voices from
those of the corpus, whose embeddings stage 1 has computed from sounds that were perturbed alike.

A voice's timbre, its mean log-magnitudes, is subtracted from the mels that a model learns and added to those that it
makes, as mean normalisation removes it for recognition: what the decoder need not learn, it does for any person.

Letters: B batch, T frames, M mel channels, S speakers, K factors, V variants, E values of a voice.
"""

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel import channel_hertz
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.audio.speaker_encoder import EMBEDDING, FACTORS, TIMBRE, TIMBRE_HERTZ, VARIANTS, VOICE
from xtts.trainer.models.layers import Block, Initialization
from xtts.trainer.models.random_numbers import fold_seed, random_normal, random_uniform

_PERTURBED_SHARE = 0.5
"""Share of the speakers of a batch that get another voice."""
_NOISE = np.repeat(np.array([0.3, 0.05], np.float32), [EMBEDDING, TIMBRE])
"""Deviations of the noise that is added to a voice: no two recordings of a person give the same."""


class VoiceEmbedding(Block):
    """A voice as `width` channels: two layers and a norm, then a projection."""

    def __init__(self, width: int, initial: Initialization) -> None:
        super().__init__(initial, "voice")
        self.hidden = self.add_dense(VOICE, EMBEDDING, "hidden")
        self.described = self.add_dense(EMBEDDING, EMBEDDING, "described")
        self.norm = self.add_norm(EMBEDDING, "norm")
        # Zero at first, so that a run begins as the model that it starts from.
        self.projection = self.add_dense(EMBEDDING, width, "projection", kernel_initializer="zeros")

    def call(self, voice: tf.Tensor) -> tf.Tensor:
        """voice: float32[B, E] -> [B, width]."""
        hidden = tf.nn.gelu(self.hidden(voice), approximate=True)
        return self.projection(self.norm(self.described(hidden)))


class RecordedVoices:
    """The voices of a corpus, float16[S, K, V, E], see `embed_voices`."""

    def __init__(self, voices: np.ndarray, profile: MelProfile) -> None:
        self.voices = voices
        self.matrices = warping_matrices(np.array(channel_hertz(profile)))

    def of_speakers(self, speaker: tf.Tensor) -> tf.Tensor:
        """The voices of speakers, int32[B] -> float32[B, E]."""
        plain = tf.constant(self.voices[:, 0].astype(np.float32).mean(axis=1))
        return tf.gather(plain, speaker)

    def draw(self, mel: tf.Tensor, speaker: tf.Tensor, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Give half of the speakers of a batch another voice: (the mels in it, their voices float32[B, E]).

        mel: float32[B, T, M], normalised, zero outside the clip; speaker: int32[B]; seed: int32[2].
        """
        perturbed, factor, variant, share = (random_uniform(fold_seed(seed, use), speaker) for use in range(4))
        factor = 1 + tf.cast(factor * (len(FACTORS) - 1), tf.int32)
        factor = tf.where(perturbed < _PERTURBED_SHARE, factor, 0)
        drawn = tf.cast(tf.gather(tf.constant(self.voices), speaker), tf.float32)
        drawn = tf.gather(drawn, factor, batch_dims=1)
        one = tf.gather(drawn, tf.cast(variant * VARIANTS, tf.int32), batch_dims=1)
        share = share[:, tf.newaxis]  # one variant, or the mean of all, or something between
        voice = share * one + (1.0 - share) * tf.reduce_mean(drawn, axis=1)
        noise = random_normal(fold_seed(seed, 4), speaker, 1, VOICE)[:, 0]
        warped = tf.matmul(mel, tf.gather(tf.constant(self.matrices), factor), transpose_b=True)
        return warped, voice + _NOISE * noise


def timbre_in_mel(voice: tf.Tensor, profile: MelProfile) -> tf.Tensor:
    """The timbre of voices in the channels of a mel: float32[B, E] -> float32[B, 1, M] in nats."""
    ours = np.interp(channel_hertz(profile), TIMBRE_HERTZ, np.arange(TIMBRE))
    weights = np.maximum(1.0 - np.abs(np.arange(TIMBRE)[:, None] - ours), 0.0)
    return tf.matmul(voice[:, EMBEDDING:], tf.constant(weights, tf.float32))[:, tf.newaxis]


def warping_matrices(hertz: np.ndarray) -> np.ndarray:
    """Matrices that multiply the frequencies of a mel by each of `FACTORS`: float32[K, M, M].

    hertz: float64[M], rising, the centre of each channel. A row of a matrix interpolates, by cubic convolution (Keys
    1981, a = -1/2), between the channels around the frequency that moves to its channel; its weights sum to 1. Beyond
    the lowest and the highest channel, the outermost is repeated.
    """
    channels = len(hertz)
    sources = np.interp(hertz / np.array(FACTORS)[:, None], hertz, np.arange(channels))
    left = np.floor(sources).astype(np.int64)
    fraction = (sources - left)[..., None]
    weights = _cubic(fraction - np.arange(-1, 3))
    taps = np.clip(left[..., None] + np.arange(-1, 3), 0, channels - 1)
    return np.asarray(np.einsum("kit,kitj->kij", weights, np.eye(channels)[taps]), np.float32)


def _cubic(distance: np.ndarray) -> np.ndarray:
    x = np.abs(distance)
    near, far = (1.5 * x - 2.5) * x**2 + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x <= 1.0, near, np.where(x < 2.0, far, 0.0))
