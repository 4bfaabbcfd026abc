"""What encoder and decoder are conditioned on besides the text: speaker, language and voice."""

from typing import NamedTuple, Self

import tensorflow as tf

from xtts.trainer.model.random_numbers import random_uniform


class Vocabularies(NamedTuple):
    """How many different values a model knows of each: the rows of its embedding tables."""

    tokens: int
    speakers: int = 1
    languages: int = 1


class Conditioning(NamedTuple):
    """Conditioning of a batch; a model reads only the parts that it has a table or an encoder for."""

    speaker: tf.Tensor | None = None
    """int32[B], row of the speaker table."""
    language: tf.Tensor | None = None
    """int32[B], row of the language table."""
    voice: tf.Tensor | None = None
    """[B, N, D'], latents of the reference encoder."""
    dropped: tf.Tensor | None = None
    """bool[B], true for clips under the null condition, zeros in place of every embedding and latent; None: none."""

    def drop(self, dropped: tf.Tensor) -> Self:
        """The same with the null condition for some clips: bool[B]."""
        voice = None if self.voice is None else _zeros_where(dropped[:, tf.newaxis, tf.newaxis], self.voice)
        return self._replace(voice=voice, dropped=dropped)

    def kept(self, embedding: tf.Tensor) -> tf.Tensor:
        """An embedding of speakers or languages, [B, D], zero for dropped clips."""
        return embedding if self.dropped is None else _zeros_where(self.dropped[:, tf.newaxis], embedding)


def drop_conditions(
    conditioning: Conditioning, rate: float, mel_length: tf.Tensor, seed: tf.Tensor | None
) -> Conditioning:
    """The null condition for a share `rate` of whole clips, for classifier-free guidance; none without a seed.

    mel_length: int32[B], seed: int32[2] | None.
    """
    if seed is None or rate == 0.0:
        return conditioning
    return conditioning.drop(random_uniform(seed, tf.range(mel_length.shape[0])) < rate)


def _zeros_where(dropped: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.where(dropped, tf.zeros([], x.dtype), x)
