"""Train a model of your own on a cache: python examples/own_model.py CACHE [STEPS].

The model guesses a clip's mean spectrum from its tokens. Order, input pipeline, locked signatures and the loop in
the graph are Lockstep's; model, loss and update are yours, in a class with the members of
`StepFunctions` that the loop uses.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import():  # quiet, and with XLA's cache of compiled steps
    import keras
    import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec, load_spec
from xtts.shared.config import TrainingConfig
from xtts.shared.config_files import load_config
from xtts.trainer.data.batch import Batch
from xtts.trainer.data.training_bucket import TrainingBucket, training_buckets
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.train_step import locked
from xtts.trainer.loop.training_loop import Position, TrainingLoop

METRICS = Metrics(weights={}, held_out=(), compared=())


class MeanSpectrumStepFunctions:
    """A table of spectra by token, whose mean is compared with the clip's: locked gradients per bucket, one update."""

    def __init__(self, spec: CacheSpec, training: TrainingConfig, buckets: list[TrainingBucket]) -> None:
        self.metrics, self.training, self.step = METRICS, training, tf.Variable(0, dtype=tf.int64)
        self.table = keras.layers.Embedding(spec.vocabulary, spec.mel_channels)
        self.table.build()
        self._gradient_steps = {bucket.number: locked(self._gradients, bucket.signature) for bucket in buckets}

    def gradients(self, bucket: int, batch: Batch, *_: tf.Tensor) -> list[tf.Tensor]:
        """Called inside the loop's graph with a batch of the bucket's signature."""
        return self._gradient_steps[bucket](*batch)

    def _gradients(self, *parts: tf.Tensor) -> list[tf.Tensor]:
        """[loss, a gradient for each weight] of the parts of a `Batch`."""
        batch = Batch(*parts)
        with tf.GradientTape() as tape:
            guess = mean_over(self.table(batch.tokens), batch.token_length)
            error = guess - mean_over(tf.cast(batch.mel, tf.float32), batch.mel_length)
            loss = tf.reduce_mean(tf.reduce_sum(tf.square(error), axis=-1))
        return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, self.table.trainable_variables))]

    @tf.function
    def apply(self, frames: tf.Tensor, rate: tf.Tensor, total: Sequence[tf.Tensor]) -> tf.Tensor:
        """Update by the result of `gradients`: float32[len(METRICS.step)]; frames: of the batch, without padding."""
        loss, *gradients = total
        for weight, gradient in zip(self.table.trainable_variables, gradients, strict=True):
            weight.assign_sub(rate * gradient)  # the loop sets the rate: warm-up, constant, decay
        self.step.assign_add(1)
        values = {"loss": loss, "learning_rate": rate, "useful_frames": tf.cast(frames, tf.float32)}
        return tf.stack([values.get(name, tf.constant(0.0)) for name in METRICS.step])


def mean_over(values: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """float32[B, N, D], length int32[B] -> float32[B, D]: the mean without padding."""
    valid = tf.sequence_mask(length, values.shape[1], tf.float32)[..., tf.newaxis]
    return tf.reduce_sum(values * valid, 1) / tf.maximum(tf.reduce_sum(valid, 1), 1.0)


def train(cache: Path, steps: int) -> list[float]:
    """The loss of every step."""
    settings = {"training.steps": steps, "training.batch_size": 4, "training.learning_rate": 0.5,
                "training.warmup_fraction": 0.1}
    spec, config = load_spec(cache), load_config("tiny", flags=settings)
    buckets = [bucket for bucket in training_buckets(cache, spec, config) if bucket.trains]
    position = Position(epoch=tf.Variable(0, dtype=tf.int64), consumed=tf.Variable(tf.zeros([len(buckets)], tf.int64)))
    loop = TrainingLoop(buckets, [MeanSpectrumStepFunctions(spec, config.training, buckets)], position)
    losses = loop.run(steps).metrics[:, METRICS.step.index("loss")]
    return [float(loss) for loss in losses]


def main() -> None:
    """Train, and print the result."""
    cache, steps = Path(sys.argv[1]), int((*sys.argv[2:], 200)[0])
    losses = train(cache, steps)
    print(f"{steps} steps: loss {losses[0]:.3f} -> {sum(losses[-10:]) / len(losses[-10:]):.3f}")


if __name__ == "__main__":
    main()
