"""Conditions of encoder and decoder besides the text: speaker, language and voice."""

from typing import NamedTuple

import tensorflow as tf


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
    """float32[B, 256], speaker embedding of a recording."""
