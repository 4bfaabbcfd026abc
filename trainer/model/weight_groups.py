"""Which weights decay, and whose gradients are clipped together."""

import tensorflow as tf


def decays(variable: tf.Variable) -> bool:
    """True for matrices and filters, which get weight decay; biases, norms and embeddings do not."""
    return str(variable.name) == "kernel"


def clip_group(variable: tf.Variable) -> int:
    """Group in which a weight's gradient is clipped: 1 the duration predictor, 0 all others.

    No gradient flows from the predictor into the rest, and the gradient of its deviance is unbounded. Under one global
    norm it would scale the others to almost zero while durations are still far off.
    """
    return int("/duration_predictor/" in str(variable.path))


_AT_THE_EDGE = ("/modulation/", "place_projection", "noisy_projection", "decoder/output_projection", "mean_projection")
"""Matrices with few rows or columns, or of conditions, by a part of a weight's path."""


def is_hidden_matrix(variable: tf.Variable) -> bool:
    """True for the matrices and filters inside the networks, which Muon moves.

    The first and the last matrix are left out, as its authors advise, and so are those of the adaptive norms, which
    turn one vector per clip into scales; filters of one channel are no matrices.
    """
    path = str(variable.path)
    inside = decays(variable) and "/depthwise/" not in path and variable.shape[-1] > 1
    return inside and not any(part in path for part in _AT_THE_EDGE)
