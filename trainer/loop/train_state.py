"""The whole state of a run as named arrays: weights, optimizer, averages, step and position."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch_sizes import trained_buckets
from xtts.trainer.loop.objectives import Network
from xtts.trainer.loop.optimizer import AdamW, Muon
from xtts.trainer.loop.training_loop import Position


def decays(variable: tf.Variable) -> bool:
    """Whether it is a matrix or a filter, which gets weight decay; biases, norms and embeddings do not."""
    return str(variable.name) == "kernel"


def clip_group(variable: tf.Variable) -> int:
    """Group in which a weight's gradient is clipped: 1 the duration predictor or the discriminators, 0 all others.

    No gradient flows from these into the rest, and that of the predictor's deviance is unbounded. Under one global norm
    it would scale the others to almost zero while durations are still far off.
    """
    return int(any(name in str(variable.path) for name in ("/duration_predictor/", "/discriminator_")))


_AT_THE_EDGE = ("/modulation/", "place_projection", "noisy_projection", "decoder/output_projection", "mean_projection")
"""Substrings of the paths of matrices with few rows or columns, or applied to conditions."""


def is_hidden_matrix(variable: tf.Variable) -> bool:
    """Whether it is a matrix or a filter inside a network, which Muon moves.

    The first and the last matrix are excluded, as its authors advise, and so are those of the adaptive norms, which
    turn one vector per clip into scales; filters of one channel are not matrices.
    """
    path = str(variable.path)
    inside = decays(variable) and "/depthwise/" not in path and variable.shape[-1] > 1
    return inside and not any(name in path for name in _AT_THE_EDGE)


def make_optimizer(weights: Sequence[tf.Variable], training: TrainingConfig) -> AdamW:
    """The optimizer of the configuration."""
    if training.optimizer == "muon":
        return Muon(weights, training, decays, is_hidden_matrix, clip_group)
    return AdamW(weights, training, decays, clip_group)


class TrainState:
    """Model, optimizer, step counter and position of one run."""

    def __init__(self, model: Network, training: TrainingConfig, spec: CacheSpec) -> None:
        self.model = model
        self.optimizer = make_optimizer(model.trainable_variables, training)
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        with tf.device("CPU:0"):  # the host computes the order of the clips, on a GPU machine too
            self.position = Position(
                epoch=tf.Variable(0, dtype=tf.int64, trainable=False),
                consumed=tf.Variable(np.zeros(len(trained_buckets(spec)), np.int64), trainable=False),
            )

    @property
    def variables(self) -> dict[str, tf.Variable]:
        """All variables that the steps change, by name; the vectors are stored for each weight."""
        return self._variables() | self.vectors

    def _variables(self) -> dict[str, tf.Variable]:
        weights = {f"weights/{weight.path}": weight for weight in self.optimizer.weights}
        return weights | {
            "updates": self.optimizer.updates,
            "step": self.step,
            "epoch": self.position.epoch,
            "consumed": self.position.consumed,
        }

    @property
    def vectors(self) -> dict[str, tf.Variable]:
        """The vectors that hold a value for each number of the weights, float32[P]."""
        optimizer = self.optimizer
        return {"first": optimizer.first, "second": optimizer.second, "averages": optimizer.averages}

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a checkpoint holds, by name."""
        paths = [weight.path for weight in self.optimizer.weights]
        arrays = {name: variable.numpy() for name, variable in self._variables().items()}
        for group, vector in self.vectors.items():
            split = self.optimizer.flat.split(vector.numpy())
            arrays |= {f"{group}/{path}": np.asarray(array) for path, array in zip(paths, split, strict=True)}
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
        for group, vector in self.vectors.items():
            self._restore_vector(vector, arrays, f"{group}/")

    def restore_weights(self, averages: Mapping[str, np.ndarray]) -> None:
        """Start from the averaged weights of another run, by weight path."""
        for weight in self.optimizer.weights:
            weight.assign(_checked(averages, weight.path, weight))
        self._restore_vector(self.optimizer.averages, averages, "")

    def _restore_vector(self, vector: tf.Variable, arrays: Mapping[str, np.ndarray], prefix: str) -> None:
        checked = [_checked(arrays, prefix + weight.path, weight) for weight in self.optimizer.weights]
        vector.assign(self.optimizer.flat.flatten(checked))


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
