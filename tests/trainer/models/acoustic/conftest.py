import functools

import numpy as np
import pytest
import tensorflow as tf
from four_clips import clips, moved, small_model, step


@pytest.fixture(scope="session")
def voice_model():
    """A model of recorded voices: do not move its weights for good."""
    return moved(small_model(seed=4, voices=True, voice_from="recording", dropout=0.0))


@pytest.fixture(scope="session")
def compiled_step(voice_model):
    """The losses and gradients of `voice_model` in XLA: (sums, loss, gradients) of `clips()` and a seed."""
    arguments = [*clips(), np.array([5, 6], np.int32)]
    signature = [tf.TensorSpec(part.shape, part.dtype) for part in arguments]
    compiled = tf.function(functools.partial(step, voice_model), input_signature=signature, jit_compile=True)
    compiled(*arguments)
    return compiled
