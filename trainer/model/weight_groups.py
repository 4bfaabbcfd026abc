"""Which weights decay, and whose gradients are clipped together."""

import tensorflow as tf

_OWN_GROUPS = ("/duration_predictor/", "/duration_flow/")
"""Networks that learn from detached encodings, by their part of a weight's path."""


def decays(variable: tf.Variable) -> bool:
    """True for matrices and filters, which get weight decay; biases, norms and embeddings do not."""
    return str(variable.name) == "kernel"


def clip_group(variable: tf.Variable) -> int:
    """Group in which a weight's gradient is clipped: 1 the duration predictor, 2 the duration flow, 0 all others.

    No gradient flows from the two into the rest, and the gradient of the predictor's deviance is unbounded. Under one
    global norm it would scale the others to almost zero while durations are still far off.
    """
    path = str(variable.path)
    return next((group for group, part in enumerate(_OWN_GROUPS, 1) if part in path), 0)
