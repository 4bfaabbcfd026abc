import functools

import numpy as np
import pytest
import tensorflow as tf
from four_clips import clips, small_model, step


@pytest.fixture(scope="session")
def voice_model():
    """A model of voice latents: do not move its weights for good."""
    model = small_model(seed=4, voice_latents=4, voice_width=16, dropout=0.0)
    for i, variable in enumerate(model.trainable_variables):
        variable.assign_add(0.05 * tf.random.stateless_normal(variable.shape, [3, i]))
    return model


@pytest.fixture(scope="session")
def compiled_step(voice_model):
    """The losses and gradients of `voice_model` in XLA: (sums, loss, gradients) of `clips()` and a seed."""
    arguments = [*clips(), np.array([5, 6], np.int32)]
    signature = [tf.TensorSpec(part.shape, part.dtype) for part in arguments]
    compiled = tf.function(functools.partial(step, voice_model), input_signature=signature, jit_compile=True)
    compiled(*arguments)
    return compiled
