"""Clips straight from their wavs, for caches without mels: read, decoded and framed by TensorFlow ops alone.

A wav that cannot be read, or is not what was indexed, gives a blank clip (mel length 0): it adds nothing to any loss,
and the loop reports its place.
"""

from collections.abc import Callable

import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.trainer.data.audio_mel import log_mel, reflected_samples
from xtts.trainer.data.batch import Batch, blank_batch


def clip_reader(spec: CacheSpec, signature: Batch) -> Callable[[tf.Tensor], Batch]:
    """Function from a serialized clip, string[], to its `Batch` without the batch dimension.

    signature: of the bucket, any batch size; a part `samples` holds reflected int16 samples instead of a mel.
    """
    clip_signature = Batch(*(tf.TensorSpec(part.shape[1:], part.dtype, part.name) for part in signature))
    blank, read = blank_batch(clip_signature), _reader(spec, clip_signature)

    def read_or_blank(serialized: tf.Tensor) -> Batch:
        # An error inside this data set is dropped, and the blank clip follows: no other op outlives a failing one.
        clip = tf.data.Dataset.from_tensors(serialized).map(tf.autograph.experimental.do_not_convert(read))
        either = clip.ignore_errors().concatenate(tf.data.Dataset.from_tensors(blank)).take(1)
        return Batch(*either.get_single_element())

    return read_or_blank


def _reader(spec: CacheSpec, signature: Batch) -> Callable[[tf.Tensor], Batch]:
    number, text = tf.io.FixedLenFeature([], tf.int64), tf.io.FixedLenFeature([], tf.string)
    features = {
        "tokens": tf.io.FixedLenFeature(signature.tokens.shape, tf.int64),
        "token_length": number,
        "mel_length": number,
        "speaker": number,
        "language": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "audio": text,
        "corpus": tf.io.FixedLenFeature([], tf.string, default_value=""),
        "samples": number,
    }
    profile, part = spec.mel_profile, signature.mel

    def read(serialized: tf.Tensor) -> Batch:
        parsed = tf.io.parse_single_example(serialized, features)
        length = tf.cast(parsed["mel_length"], tf.int32)
        samples = _reflected(_samples(_path(parsed, spec), parsed["samples"], profile.sample_rate), length, spec)
        if part.dtype == tf.int16:
            parsed[part.name] = tf.pad(samples, [[0, part.shape[0] - tf.size(samples)]])
        else:
            mel = tf.cast(log_mel(samples, profile), part.dtype)
            silence = tf.constant(profile.silence, part.dtype)
            parsed[part.name] = tf.pad(mel, [[0, part.shape[0] - length], [0, 0]], constant_values=silence)
        return Batch(*(tf.ensure_shape(tf.cast(parsed[to.name], to.dtype), to.shape) for to in signature))

    return read


def _path(parsed: dict[str, tf.Tensor], spec: CacheSpec) -> tf.Tensor:
    """string[]: where the wav lies."""
    names, folders = zip(*spec.audio_folders.items(), strict=True)
    place = tf.argmax(tf.cast(tf.equal(parsed["corpus"], tf.constant(names)), tf.int32))
    absolute = tf.equal(tf.strings.substr(parsed["audio"], 0, 1), "/")
    return tf.where(absolute, parsed["audio"], tf.strings.join([tf.gather(folders, place), parsed["audio"]], "/"))


def _samples(path: tf.Tensor, count: tf.Tensor, rate: int) -> tf.Tensor:
    """int16[S] of a wav; fails where it is missing, broken, or of another length, rate or number of channels."""
    wav = tf.audio.decode_wav(tf.io.read_file(path))
    shape = tf.shape(wav.audio, tf.int64)
    checks = [tf.debugging.assert_equal(shape, tf.stack([count, 1])), tf.debugging.assert_equal(wav.sample_rate, rate)]
    with tf.control_dependencies(checks):
        return tf.cast(wav.audio[:, 0] * 32768.0, tf.int16)


def _reflected(samples: tf.Tensor, frames: tf.Tensor, spec: CacheSpec) -> tf.Tensor:
    """The samples, reflected at both ends, that all `frames` of the clip reach: int16[S]."""
    profile, pad = spec.mel_profile, spec.mel_profile.padding_samples
    padded = tf.pad(samples, [[pad, pad]], mode="REFLECT")
    return padded[: reflected_samples(profile, frames)]
