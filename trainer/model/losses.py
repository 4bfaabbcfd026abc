"""The losses of the acoustic model, summed over each clip."""

import tensorflow as tf

from xtts.trainer.model.layers import apply_mask


def duration_deviance(log_frames: tf.Tensor, durations: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Gamma deviance of the durations, close to the squared error of their logarithms: -> float32[B].

    log_frames: float32[B, L], predicted, durations: int32[B, L], valid: bool[B, L, 1]. A token without a frame (in a
    clip with fewer frames than tokens) counts as one frame.
    """
    # 2 (d/p - 1 - log(d/p)) = e^2 + e^3/3 + ... with e = log(d/p). Plain e^2 is minimal at the geometric mean, and
    # spoke held-out sentences 8% too fast after 2,000 steps (10% after 1,500). The deviance is minimal at the mean, and
    # was about 1% off after 1,000.
    error = tf.math.log(tf.maximum(tf.cast(durations, tf.float32), 1.0)) - log_frames
    deviance = 2.0 * (tf.math.expm1(error) - error)
    return tf.reduce_sum(apply_mask(deviance, valid[..., 0]), axis=1)


def sum_of_squares(error: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """error: float32[B, N, D], valid: bool[B, N, 1] -> float32[B]; padding counts as 0, even NaN."""
    return tf.reduce_sum(tf.square(apply_mask(error, valid)), axis=[1, 2])
