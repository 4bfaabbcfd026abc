"""One batch, and the signature that all batches of a bucket share."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import tensorflow as tf


class Batch(NamedTuple):
    """B clips of one bucket. As a signature it holds the `tf.TensorSpec` of each field instead.

    The step casts a float16 mel, not tf.data: XLA fuses the cast into the read, tf.data would make a copy.
    """

    tokens: tf.Tensor
    """int32[B, L]."""
    mel: tf.Tensor
    """[B, T, M] of the stored type, natural-log magnitude."""
    token_length: tf.Tensor
    """int32[B]."""
    mel_length: tf.Tensor
    """int32[B]: 0 for a padding row."""
    speaker: tf.Tensor
    """int32[B]: index into the cache's speakers, 0 for a cache without them."""
    language: tf.Tensor
    """int32[B]: index into the cache's languages."""


class CropBatch(NamedTuple):
    """B crops of T frames, which train a vocoder. As a signature it holds the `tf.TensorSpec` of each field instead."""

    mel: tf.Tensor
    """[B, T, M] of the stored type, natural-log magnitude."""
    mel_length: tf.Tensor
    """int32[B]: 0 for a padding row."""
    waveform: tf.Tensor
    """int16[B, T * hop]."""
    log_hertz: tf.Tensor
    """float32[B, T]: natural logarithm of the pitch in Hz, interpolated where unvoiced."""
    voiced: tf.Tensor
    """uint8[B, T]: 1 where voiced."""


AnyBatch = Batch | CropBatch


def is_locked(signature: Sequence[tf.TensorSpec]) -> bool:
    """Whether all dimensions of a signature are fixed."""
    return all(spec.shape.is_fully_defined() for spec in signature)


def make_signature(tokens: int | None, frames: int | None, batch_size: int | None, *, mel: str, channels: int) -> Batch:
    """The signature of B clips with L tokens and T frames; None leaves a dimension open. mel: the stored type."""
    return Batch(
        tokens=tf.TensorSpec([batch_size, tokens], tf.int32, "tokens"),
        mel=tf.TensorSpec([batch_size, frames, channels], tf.as_dtype(mel), "mel"),
        token_length=tf.TensorSpec([batch_size], tf.int32, "token_length"),
        mel_length=tf.TensorSpec([batch_size], tf.int32, "mel_length"),
        speaker=tf.TensorSpec([batch_size], tf.int32, "speaker"),
        language=tf.TensorSpec([batch_size], tf.int32, "language"),
    )


def crop_signature(frames: int, batch_size: int | None, *, mel: str, channels: int, hop: int) -> CropBatch:
    """The signature of B crops of T frames; None leaves B open. mel: the stored type."""
    return CropBatch(
        mel=tf.TensorSpec([batch_size, frames, channels], tf.as_dtype(mel), "mel"),
        mel_length=tf.TensorSpec([batch_size], tf.int32, "mel_length"),
        waveform=tf.TensorSpec([batch_size, frames * hop], tf.int16, "waveform"),
        log_hertz=tf.TensorSpec([batch_size, frames], tf.float32, "log_hertz"),
        voiced=tf.TensorSpec([batch_size, frames], tf.uint8, "voiced"),
    )


def with_tensors(batch: AnyBatch, tensors: Iterable[tf.Tensor]) -> AnyBatch:
    """A batch with these tensors, of the same type as a batch or signature."""
    return type(batch)(*tensors)


def blank_batch(signature: AnyBatch) -> AnyBatch:
    """A batch of padding rows: it compiles a step and changes no weight."""
    return with_tensors(signature, (tf.zeros(spec.shape, spec.dtype) for spec in signature))
