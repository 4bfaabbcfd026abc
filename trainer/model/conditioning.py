"""What encoder and decoder are conditioned on besides the text: who speaks, and in which language."""

from typing import NamedTuple

import keras
import tensorflow as tf

from xtts.trainer.model.layers import Seeds


class Conditioning(NamedTuple):
    """One entry for each clip of a batch; a model reads those that it has tables or an encoder for."""

    speaker: tf.Tensor | None = None
    """int32[B], place in the speaker table."""
    language: tf.Tensor | None = None
    """int32[B], place in the language table."""
    voice: tf.Tensor | None = None
    """[B, N, D'], latents of the reference encoder."""


def embedding_table(
    rows: int, width: int, seeds: Seeds, *, dtype: keras.DTypePolicy, name: str
) -> keras.layers.Embedding | None:
    """An embedding [rows, width]; None where there is nothing to tell apart."""
    if rows < 2:
        return None
    initial = keras.initializers.RandomNormal(0.0, 0.1, seed=next(seeds))
    return keras.layers.Embedding(rows, width, initial, dtype=dtype, name=name)
