"""What must be exact whatever the hardware multiplies with: logits under bfloat16, frame indices under TF32."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from xtts.shared.config_files import load_config
from xtts.trainer.models.acoustic import networks as module
from xtts.trainer.models.acoustic.networks import FlowDecoder, Vocabularies
from xtts.trainer.models.layers import Initialization, SelfAttention

MATMUL = tf.matmul
SMALL = ["model.text_width=8", "model.decoder_width=8", "model.decoder_blocks=1"]


def test_logits_of_bfloat16_are_float32(monkeypatch):
    seen = []

    def matmul(a, b, transpose_b=False, **options):
        product = MATMUL(a, b, transpose_b=transpose_b, **options)
        if transpose_b:
            seen.append((a, b, product))
        return product

    monkeypatch.setattr(tf, "matmul", matmul)
    layer = SelfAttention(64, 2, Initialization(itertools.count(), keras.DTypePolicy("mixed_bfloat16")))
    layer.build()
    made_up = tf.random.stateless_normal([2, 150, 64], [1, 0], stddev=3.0)
    layer(tf.cast(made_up, tf.bfloat16), tf.ones([2, 150, 1], tf.bool))
    ((query, key, logits),) = seen
    for operand in (query, key):
        assert (tf.cast(tf.cast(operand, tf.bfloat16), operand.dtype) == operand).numpy().all()
    exact = np.matmul(*(np.asarray(x, np.float64) for x in (query, tf.transpose(key, [0, 1, 3, 2]))))
    assert np.abs(np.asarray(logits, np.float64) - exact).max() < 1e-5 * np.abs(exact).max()


def tf32_matmul(a, b, **options):
    """A GPU's default product of float32: 10 bits of each operand."""

    def rounded(x):
        bits = tf.bitcast(x, tf.int32) + 0x1000
        return tf.bitcast(bits & ~0x1FFF, tf.float32) if x.dtype == tf.float32 else x

    return MATMUL(rounded(tf.convert_to_tensor(a)), rounded(tf.convert_to_tensor(b)), **options)


@pytest.fixture(params=["float32", "mixed_bfloat16"])
def decoder(request):
    config = load_config("tiny", assignments=SMALL).model
    built = FlowDecoder(config, 4, Vocabularies(1), Initialization(itertools.count(), keras.DTypePolicy(request.param)))
    built.build()
    return built


def test_token_spans_are_exact_beyond_the_bits_of_tf32(decoder, monkeypatch):
    features = []
    made = module.position_features
    monkeypatch.setattr(module, "position_features", lambda *spans: features.append(made(*spans)) or features[0])
    monkeypatch.setattr(tf, "matmul", tf32_matmul)
    durations = np.full([1, 1_500], 5)
    durations[0, 7], frames = 2_049, 1_499 * 5 + 2_049
    encodings, mean = tf.zeros([1, 1_500, 8], decoder.compute_dtype), tf.zeros([1, 1_500, 4])
    decoder.regulate_length(encodings, mean, tf.constant(durations, tf.int32), frames)
    offset = np.concatenate([np.arange(length) for length in durations[0]])
    length = np.repeat(durations[0], durations[0]).astype(float)
    angle = np.pi * (offset + 0.5) / length
    expected = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.log(length)], axis=-1)
    np.testing.assert_allclose(features[0][0], expected, atol=1e-5)
