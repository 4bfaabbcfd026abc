"""What decides the durations of one piece of text besides its words and the speed, in both engines.

Letters: N tokens.
"""

import numpy as np
import tensorflow as tf

from xtts.shared.model_config import ModelConfig
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.model.duration_flow import Timing
from xtts.trainer.model.random_numbers import fold_seed, random_normal
from xtts.trainer.synth.onnx_names import DURATION_NOISE, WANTED_FRAMES

_START = 1
"""Use of the seed: the mel's noise is drawn from the seed itself."""


def timing_signature(config: ModelConfig) -> dict[str, tf.TensorSpec]:
    """The inputs of a model by name; a model of mean durations draws none."""
    inputs = {WANTED_FRAMES: tf.TensorSpec([1], tf.int32, WANTED_FRAMES)}
    if config.duration_model == "flow":
        inputs[DURATION_NOISE] = tf.TensorSpec([], tf.float32, DURATION_NOISE)
    return inputs


def timing_values(options: SynthesisOptions, frames: int) -> dict[str, np.ndarray]:
    """The value of every input; frames: those of the piece, 0 for as many as its durations have."""
    return {
        WANTED_FRAMES: np.array([frames], np.int32),
        DURATION_NOISE: np.array(options.duration_noise, np.float32),
    }


def timing(given: dict[str, tf.Tensor], tokens: tf.Tensor, seed: tf.Tensor) -> Timing:
    """The timing of a piece from its inputs; tokens: int32[1, N] of any locked length N, seed: int32[2]."""
    if DURATION_NOISE not in given:
        return Timing(frames=given[WANTED_FRAMES])
    noise = random_normal(fold_seed(seed, _START), tf.zeros([1], tf.int32), tokens.shape[1], 1)[..., 0]
    scale = given[DURATION_NOISE]
    return Timing(frames=given[WANTED_FRAMES], start=noise * scale, drawn=scale > 0.0)
