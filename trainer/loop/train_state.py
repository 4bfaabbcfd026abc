"""The whole state of a run as named arrays: weights, optimizer, averages, step and position."""

import hashlib
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch_sizes import trained_buckets
from xtts.trainer.loop.objective import Objective
from xtts.trainer.loop.optimizer import Optimizer
from xtts.trainer.loop.training_loop import Position


class TrainState:
    """Model, optimizer, step counter and position of one run."""

    def __init__(self, objective: Objective, training: TrainingConfig, spec: CacheSpec) -> None:
        self.model = objective.model
        self.optimizer = Optimizer(objective, training)
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        with tf.device("CPU:0"):  # the host computes the order of the clips, on a GPU machine too
            self.position = Position(
                epoch=tf.Variable(0, dtype=tf.int64, trainable=False),
                consumed=tf.Variable(np.zeros(len(trained_buckets(spec)), np.int64), trainable=False),
            )

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """All variables that the steps change, by name; the vectors are stored for each weight."""
        return self._variables() | {name: vector for name, vector, _ in self.optimizer.vectors()}

    def _variables(self) -> dict[str, tf.Variable]:
        weights = {f"weights/{weight.path}": weight for weight in self.optimizer.weights}
        return weights | {
            "updates": self.optimizer.updates,
            "step": self.step,
            "epoch": self.position.epoch,
            "consumed": self.position.consumed,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a checkpoint holds, by name."""
        arrays = {name: variable.numpy() for name, variable in self._variables().items()}
        for group, vector, parts in self.optimizer.vectors():
            numbers = vector.numpy()
            arrays |= {f"{group}/{weight.path}": numbers[span].reshape(weight.shape) for weight, span in parts}
        return arrays

    def digest(self) -> str:
        """SHA-256 of all names and values."""
        digest = hashlib.sha256()
        for name, array in self.arrays().items():
            digest.update(name.encode() + array.tobytes())
        return digest.hexdigest()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore what `arrays()` returned; names and shapes must match the model."""
        for name, variable in self._variables().items():
            variable.assign(_checked(arrays, name, variable))
        for group, vector, parts in self.optimizer.vectors():
            vector.assign(np.concatenate([_checked(arrays, f"{group}/{w.path}", w).ravel() for w, _ in parts]))

    def restore_weights(self, averages: Mapping[str, np.ndarray]) -> None:
        """Start from the averaged weights of another run, by weight path."""
        for weight in self.optimizer.weights:
            weight.assign(_checked(averages, weight.path, weight))
        self.optimizer.averages.assign(self.optimizer.flat.flatten(self.optimizer.weights))


def _checked(arrays: Mapping[str, np.ndarray], name: str, variable: tf.Variable) -> np.ndarray:
    """The array of a name; `LockstepError` unless it has the shape of the variable."""
    shape = tuple(arrays[name].shape) if name in arrays else None
    if shape != tuple(variable.shape):
        raise LockstepError(
            f"checkpoint array {name}",
            found="missing" if shape is None else f"shape {shape}",
            expected=f"shape {tuple(variable.shape)}",
        )
    return arrays[name]
