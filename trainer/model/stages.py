"""What the acoustic model knows of a batch between two of its stages.

Letters: B batch, L tokens, T frames, M mel channels, D width.
"""

from typing import NamedTuple

import tensorflow as tf

from xtts.trainer.model.conditioning import Conditioning


class AlignedClips(NamedTuple):
    """A batch before the flow: nothing here depends on the flow's time and noise."""

    target: tf.Tensor
    """float32[B, T, M], the mel in normalised units."""
    frame_mask: tf.Tensor
    """bool[B, T, 1], true inside a clip."""
    scored: tf.Tensor
    """bool[B, T, 1], the frames that prior and flow count: frame_mask without the leaked frames."""
    text: tf.Tensor
    """[B, T, D], the text as the decoder gets it in each frame."""
    conditioning: Conditioning
    prior: tf.Tensor
    """float32[B], loss per clip."""
    duration: tf.Tensor
    """float32[B], loss per clip."""
    tokens: tuple[tf.Tensor, tf.Tensor, tf.Tensor]
    """(encodings [B, L, D] without gradient, durations int32[B, L], valid bool[B, L, 1])."""


class TimedTokens(NamedTuple):
    """Texts before their mels are drawn: [B, L, D], float32[B, L, M] in normalised mel units, frames int32[B, L]."""

    encodings: tf.Tensor
    mean: tf.Tensor
    durations: tf.Tensor
