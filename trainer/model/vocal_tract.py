"""Vocal tract length perturbation: voices that the corpus lacks, made of those it has (Jaitly and Hinton, ICML 2013).

All frequencies of a clip times one factor sound like a shorter or longer vocal tract, with a higher or lower pitch.
Letters: B batch, T frames, M mel channels, K factors.
"""

import numpy as np
import tensorflow as tf

from xtts.trainer.model.random_numbers import fold_seed, random_uniform

_FACTORS = 16
"""K: half of them raise the frequencies, half of them lower them."""
_SHARE = 0.5
"""Of the speakers of a batch; the others keep their voice."""


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
