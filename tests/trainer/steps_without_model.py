"""Steps for tests of what surrounds them: no loss, no gradient, next to nothing to trace and compile."""

import tensorflow as tf

from xtts.trainer.engine.train_step import LOSSES, Steps


class StepsWithoutModel(Steps):
    """Losses and gradients are zero."""

    def _gradients(self, batch, random, counts):
        return tf.zeros([len(LOSSES)]), [tf.zeros_like(weight) for weight in self.optimizer.weights]

    def _validation_sums(self, bucket, batch, first):
        return {name: tf.zeros([tf.shape(batch.mel)[0]]) for name in LOSSES}
