"""Log-mels from TensorFlow ops: the same function in the input pipeline and inside the step.

The reference is shared/audio/mel.py; the two differ by at most its `MEL_TOLERANCE`. Samples come with their reflection
at both ends, so that frames are a matter of reshaping.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel import hann_window, mel_filterbank
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.trainer.data.batch import Batch

_FULL_SCALE = 32768.0


def reflected_samples(profile: MelProfile, frames: int) -> int:
    """Samples that T frames reach, the reflected ones included."""
    return (frames - 1) * profile.hop_samples + profile.fft_size


def log_mel(samples: tf.Tensor, profile: MelProfile) -> tf.Tensor:
    """Log-mel of reflected samples, int16[..., `reflected_samples`(T)]: float32[..., T, M], natural-log magnitude.

    The FFT is of float64, as a float32 FFT is off by more than the tolerance where loud and quiet bins meet.
    """
    hops, hop = profile.fft_size // profile.hop_samples, profile.hop_samples
    blocks = tf.reshape(samples, tf.concat([tf.shape(samples)[:-1], [-1, hop]], 0))
    if samples.shape[-1] is not None:
        blocks = tf.ensure_shape(blocks, [*samples.shape[:-1], samples.shape[-1] // hop, hop])
    blocks = tf.cast(blocks, tf.float64) / _FULL_SCALE
    last = hops - 1
    # A frame is `hops` blocks in a row.
    shifted = [blocks[..., i : i - last or None, :] for i in range(hops)]
    frames = tf.concat(shifted, axis=-1)
    filters = mel_filterbank(profile)
    bins = int(np.flatnonzero(filters.any(axis=0)).max()) + 1
    window = tf.constant(hann_window(profile, np.dtype(np.float64)), frames.dtype)
    spectrum = tf.signal.rfft(frames * window)[..., :bins]
    real, imaginary = (tf.cast(part, tf.float32) for part in (tf.math.real(spectrum), tf.math.imag(spectrum)))
    magnitude = tf.sqrt(tf.square(real) + tf.square(imaginary) + profile.magnitude_floor)
    mel = tf.linalg.matmul(magnitude, tf.constant(filters[:, :bins].T, tf.float32))
    return tf.math.log(tf.maximum(mel, profile.log_floor))


def mel_in_step(spec: CacheSpec) -> Callable[[Batch], Batch]:
    """Function from a batch of samples, int16[B, S], to one of mels as the cache would store them.

    It leaves a batch that holds mels as it is. Frames after a clip's last are silence.
    """

    def with_mel(batch: Batch) -> Batch:
        if batch.mel.dtype != tf.int16:
            return batch
        profile = spec.mel_profile
        mel = tf.cast(log_mel(batch.mel, profile), spec.mel_dtype)
        mask = tf.sequence_mask(batch.mel_length, mel.shape[1])[..., tf.newaxis]
        return batch._replace(mel=tf.where(mask, mel, tf.constant(profile.silence, mel.dtype)))

    return with_mel
