"""Clips straight from their wavs, for caches without mels: read, decoded and framed by TensorFlow ops alone.

The log-mel is the same function in the input pipeline and inside the step. The reference is shared/audio/mel.py; the
two differ by at most its `MEL_TOLERANCE`. Samples come reflected at both ends, so that framing them is a reshape. A
wav that cannot be read, or is not what was indexed, gives a padding row (mel length 0): it adds nothing to any loss,
and the loop reports it.
"""

import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel import hann_window, mel_filterbank
from xtts.shared.audio.mel_profiles import EDGE_FRAMES, MelProfile
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.system.machine import usable_cores
from xtts.trainer.data.batch import AnyBatch, Batch, blank_batch

_FULL_SCALE = 32768.0


def reflected_samples(profile: MelProfile, frames: int) -> int:
    """Samples that a clip of T frames covers, reflected ones included; its silent edges cover none."""
    return (frames - 2 * EDGE_FRAMES - 1) * profile.hop_samples + profile.fft_size


def log_mel(samples: tf.Tensor, profile: MelProfile) -> tf.Tensor:
    """Log-mel of reflected samples, int16[..., S] -> float32[..., T, M], natural-log magnitude, without silent edges.

    The FFT is in float64: a float32 FFT is off by more than the tolerance where loud and quiet bins meet.
    """
    hops, hop = profile.fft_size // profile.hop_samples, profile.hop_samples
    blocks = tf.reshape(samples, [*samples.shape[:-1], samples.shape[-1] // hop, hop])
    blocks = tf.cast(blocks, tf.float64) / _FULL_SCALE
    last = hops - 1
    # A frame is `hops` blocks in a row.
    shifted = [blocks[..., i : i - last or None, :] for i in range(hops)]
    frames = tf.concat(shifted, axis=-1)
    filters = mel_filterbank(profile)
    bins = int(np.flatnonzero(filters.any(axis=0)).max()) + 1
    window = tf.constant(hann_window(profile, np.dtype(np.float64)), frames.dtype)
    spectrum = tf.signal.rfft(frames * window)[..., :bins]
    real, imaginary = (tf.cast(x, tf.float32) for x in (tf.math.real(spectrum), tf.math.imag(spectrum)))
    magnitude = tf.sqrt(tf.square(real) + tf.square(imaginary) + profile.magnitude_floor)
    mel = tf.linalg.matmul(magnitude, tf.constant(filters[:, :bins].T, tf.float32))
    return tf.math.log(tf.maximum(mel, profile.log_floor))


def mel_in_step(batch: AnyBatch, spec: CacheSpec) -> AnyBatch:
    """Return a batch whose samples, int16[B, S], are replaced by mels as the cache would store them.

    A batch that holds mels is unchanged. Frames after a clip's last are silence.
    """
    if batch.mel.dtype != tf.int16:
        return batch
    profile = spec.mel_profile
    mel = tf.cast(log_mel(batch.mel, profile), spec.mel_dtype)
    silence = tf.constant(profile.silence, mel.dtype)
    mask = tf.sequence_mask(batch.mel_length - 2 * EDGE_FRAMES, mel.shape[1])[..., tf.newaxis]
    edges = [[0, 0], [EDGE_FRAMES, EDGE_FRAMES], [0, 0]]
    return batch._replace(mel=tf.pad(tf.where(mask, mel, silence), edges, constant_values=silence))


def clips_from_audio(clips: tf.data.Dataset, spec: CacheSpec, signature: Batch) -> tf.data.Dataset:
    """Serialized clips that name audio, to `Batch`es without a batch dimension, on all cores and in order.

    signature: of the bucket, any batch size; its field `samples` holds reflected int16 samples.
    """
    signature = Batch(*(tf.TensorSpec(field.shape[1:], field.dtype, field.name) for field in signature))
    integer, string = tf.io.FixedLenFeature([], tf.int64), tf.io.FixedLenFeature([], tf.string)
    features = {
        **dict.fromkeys(("token_length", "mel_length", "speaker", "samples"), integer),
        "tokens": tf.io.FixedLenFeature(signature.tokens.shape, tf.int64),
        "language": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "audio": string,
        "corpus": tf.io.FixedLenFeature([], tf.string, default_value=""),
    }

    def path(parsed: dict[str, tf.Tensor]) -> tf.Tensor:
        names, folders = zip(*spec.audio_folders.items(), strict=True)
        corpus = tf.argmax(tf.cast(tf.equal(parsed["corpus"], tf.constant(names)), tf.int32))
        absolute = tf.equal(tf.strings.substr(parsed["audio"], 0, 1), "/")
        return tf.where(absolute, parsed["audio"], tf.strings.join([tf.gather(folders, corpus), parsed["audio"]], "/"))

    def stored_samples(parsed: dict[str, tf.Tensor]) -> tf.Tensor:
        """int16[S]; fails if the wav is missing, broken, or of another length, rate or number of channels."""
        wav = tf.audio.decode_wav(tf.io.read_file(path(parsed)))
        expected = tf.stack([parsed["samples"], 1])
        checks = [
            tf.debugging.assert_equal(tf.shape(wav.audio, tf.int64), expected),
            tf.debugging.assert_equal(wav.sample_rate, spec.mel_profile.sample_rate),
        ]
        with tf.control_dependencies(checks):
            return tf.cast(wav.audio[:, 0] * _FULL_SCALE, tf.int16)

    def read(serialized: tf.Tensor) -> Batch:
        parsed = tf.io.parse_single_example(serialized, features)
        length, pad = tf.cast(parsed["mel_length"], tf.int32), spec.mel_profile.padding_samples
        reflected = tf.pad(stored_samples(parsed), [[pad, pad]], mode="REFLECT")
        samples = reflected[: reflected_samples(spec.mel_profile, length)]
        parsed["samples"] = tf.pad(samples, [[0, signature.mel.shape[0] - tf.size(samples)]])
        return Batch(*(tf.ensure_shape(tf.cast(parsed[x.name], x.dtype), x.shape) for x in signature))

    def read_or_pad(serialized: tf.Tensor) -> Batch:
        # An error inside this data set is dropped, and the padding row follows: no other op outlives a failing one.
        clip = tf.data.Dataset.from_tensors(serialized).map(tf.autograph.experimental.do_not_convert(read))
        padding = tf.data.Dataset.from_tensors(blank_batch(signature))
        return Batch(*clip.ignore_errors().concatenate(padding).take(1).get_single_element())

    read_all = tf.autograph.experimental.do_not_convert(read_or_pad)
    return clips.map(read_all, num_parallel_calls=usable_cores(), deterministic=True)
