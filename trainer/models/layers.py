"""Layers of the acoustic model: masked convolutions, rotary self-attention, ConvNeXt blocks with adaptive norms.

Letters: B batch, L tokens, T frames, N tokens or frames, D width, C width of the condition, K kernel. `valid` is
bool[B, N, 1], true inside a clip's length. Weights are the only variables: dropout is keyed by a seed passed in.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import keras
import tensorflow as tf

from xtts.trainer.models.random_numbers import dropout, fold_seed

_Layer = TypeVar("_Layer", bound=keras.layers.Layer)


@dataclass(frozen=True)
class Initialization:
    """Settings that all layers of a model are made with."""

    seeds: Iterator[int]
    """One for each weight, in construction order, so that initial weights are a function of one seed."""
    dtype: keras.DTypePolicy

    def glorot(self) -> keras.initializers.Initializer:
        """Return the initializer of a matrix."""
        return keras.initializers.GlorotUniform(seed=next(self.seeds))


def axis_size(x: tf.Tensor, axis: int) -> int | tf.Tensor:
    """Size of an axis: int where the shape is static, as in training; int32[] in an exported graph of any size."""
    size: int | None = x.shape[axis]
    return tf.shape(x)[axis] if size is None else size


def length_mask(length: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """Mask of sequences, true inside their length: int32[B] -> bool[B, size, 1]."""
    return (tf.range(size) < length[:, tf.newaxis])[..., tf.newaxis]


def apply_mask(x: tf.Tensor, valid: tf.Tensor | None) -> tf.Tensor:
    """Set `x` to zero outside the clip, if it is padded: by a select, not a product, so that NaN is masked too."""
    return x if valid is None else tf.where(valid, x, tf.zeros([], x.dtype))


def sinusoids(position: tf.Tensor, width: int) -> tf.Tensor:
    """Sines and cosines of geometrically spaced wavelengths up to 2 pi 10,000: float32[...] -> float32[..., width]."""
    half = width // 2
    frequency = tf.exp(-math.log(1e4) * tf.range(half, dtype=tf.float32) / half)
    angle = position[..., tf.newaxis] * frequency
    return tf.concat([tf.sin(angle), tf.cos(angle)], axis=-1)


def rotate(x: tf.Tensor) -> tf.Tensor:
    """Apply rotary positions (RoFormer, 2104.09864, eq. 34): rotate [..., L, D] by angles that grow along L."""
    position = tf.cast(tf.range(axis_size(x, -2)), tf.float32)
    sine, cosine = tf.split(sinusoids(position, x.shape[-1]), 2, -1)
    first, second = tf.split(tf.cast(x, tf.float32), 2, axis=-1)
    return tf.cast(tf.concat([first * cosine - second * sine, first * sine + second * cosine], axis=-1), x.dtype)


def attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, valid: tf.Tensor | None) -> tf.Tensor:
    """Mix values by attention: [B, heads, L, D / heads], twice [B, heads, N, D / heads] -> [B, L, D].

    valid: bool[B, N, 1], true where keys count, None for all.
    """
    # A bfloat16 product has a bfloat16 result: 8 bits per logit. Casting the operands up first is exact, in TF32 too,
    # and makes sums and result float32. BatchMatMulV3 gives float32 from bfloat16, but has no gradient and no kernel
    # outside XLA.
    products = tf.matmul(tf.cast(query, tf.float32), tf.cast(key, tf.float32), transpose_b=True)
    logits = products / math.sqrt(query.shape[-1])
    if valid is not None:
        # Finite, so that a padding row, whose keys are all masked, gets a uniform softmax instead of NaN.
        logits += tf.where(tf.transpose(valid, [0, 2, 1])[:, tf.newaxis], 0.0, -1e9)
    mixed = tf.transpose(tf.matmul(tf.cast(tf.nn.softmax(logits), value.dtype), value), [0, 2, 1, 3])
    return tf.reshape(mixed, [axis_size(query, 0), -1, mixed.shape[2] * mixed.shape[3]])


@tf.custom_gradient  # type: ignore[untyped-decorator]
def normalise(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Normalise to mean 0 and variance 1 over the last axis, without scale and shift: float32[..., D] -> same shape.

    The gradient is that of "Layer normalization", 1607.06450, with mean and variance substituted: differentiating them
    separately takes twice as many reductions, and each reduction is a kernel on the device.
    """
    centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    scale = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True) + 1e-5)
    normed = centred * scale

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        projection = tf.reduce_mean(upstream * normed, axis=-1, keepdims=True)
        return scale * (upstream - tf.reduce_mean(upstream, axis=-1, keepdims=True) - normed * projection)

    return normed, gradient


class Projection(keras.layers.Dense):  # type: ignore[misc]
    """Product of the last axis with a matrix, and a bias."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """x: [..., D] -> [..., E]."""
        if None not in x.shape:
            return super().call(x)
        # In an exported graph one operator; Keras would flatten x and restore its shape, by six more.
        product = tf.matmul(x, self.kernel)
        return product + self.bias if self.use_bias else product


class LayerNorm(keras.layers.LayerNormalization):  # type: ignore[misc]
    """Layer norm with a learnt scale and shift."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """x: [..., D] -> [..., D]."""
        scale, shift = (tf.cast(weight, tf.float32) for weight in (self.gamma, self.beta))
        return tf.cast(normalise(tf.cast(x, tf.float32)) * scale + shift, x.dtype)


class Block(keras.layers.Layer):  # type: ignore[misc]
    """A layer made of layers. `build` creates the weights of all that were added, under the path of the block."""

    def __init__(self, initial: Initialization, name: str, *, autocast: bool = True) -> None:
        super().__init__(dtype=initial.dtype, name=name, autocast=autocast)
        self.initial = initial
        self._builds: list[Callable[[], None]] = []

    def add_layer(self, layer: _Layer, *shape: tuple[int | None, ...] | None) -> _Layer:
        """Return `layer`, to be built for inputs of `shape`; without one if it is a `Block`, which knows its own."""
        self._builds.append(partial(layer.build, *shape))
        return layer

    def add_layers(self, blocks: Iterable[_Layer]) -> list[_Layer]:
        """Return blocks, to be built in this order."""
        return [self.add_layer(block) for block in blocks]

    def add_dense(self, inputs: int, outputs: int, name: str, **options: object) -> Projection:
        """Add a projection from `inputs` to `outputs` channels; its matrix is Glorot's unless options say otherwise."""
        options = {"dtype": self.dtype_policy, **options}
        initializer = options.pop("kernel_initializer", None) or self.initial.glorot()
        layer = Projection(outputs, kernel_initializer=initializer, name=name, **options)
        return self.add_layer(layer, (None, inputs))

    def add_convolution(self, inputs: int, outputs: int, kernel: int, name: str) -> keras.layers.Conv1D:
        """Add a convolution along the sequence, padded with zeros at both ends."""
        options = {"kernel_initializer": self.initial.glorot(), "dtype": self.dtype_policy, "name": name}
        layer = keras.layers.Conv1D(outputs, kernel, padding="same", **options)
        return self.add_layer(layer, (None, None, inputs))

    def add_norm(self, width: int, name: str) -> LayerNorm:
        """Add a layer norm of `width` channels."""
        return self.add_layer(LayerNorm(dtype=self.dtype_policy, name=name), (None, width))

    def add_table(self, rows: int, width: int, name: str) -> keras.layers.Embedding | None:
        """Add an embedding [rows, width]; None for fewer than two rows, from which there is nothing to choose."""
        if rows < 2:
            return None
        initial = keras.initializers.RandomNormal(0.0, 0.1, seed=next(self.initial.seeds))
        return self.add_layer(keras.layers.Embedding(rows, width, initial, dtype=self.dtype_policy, name=name), None)

    def build(self) -> None:
        """Create the weights."""
        for build in self._builds:
            build()


class SelfAttention(Block):
    """Multi-head self-attention with rotary positions among the valid tokens of a clip."""

    def __init__(self, width: int, heads: int, initial: Initialization) -> None:
        super().__init__(initial, "attention")
        self.heads = heads
        self.qkv = self.add_dense(width, 3 * width, "qkv", use_bias=False)
        self.output_projection = self.add_dense(width, width, "output_projection")

    def call(self, x: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """x: [B, L, D], valid: bool[B, L, 1] -> [B, L, D]."""
        projected = tf.reshape(self.qkv(x), [axis_size(x, 0), -1, 3, self.heads, x.shape[-1] // self.heads])
        heads = tf.transpose(projected, [2, 0, 3, 1, 4])
        query, key = tf.unstack(rotate(heads[:2]))
        return self.output_projection(attend(query, key, heads[2], valid))


class TransformerBlock(Block):
    """Pre-norm Transformer block: self-attention, then a two-layer perceptron."""

    def __init__(self, width: int, heads: int, expansion: int, rate: float, initial: Initialization, name: str) -> None:
        super().__init__(initial, name)
        self.rate = rate
        self.attention_norm = self.add_norm(width, "attention_norm")
        self.attention = self.add_layer(SelfAttention(width, heads, initial))
        self.ffn_norm = self.add_norm(width, "ffn_norm")
        self.ffn_in = self.add_dense(width, expansion * width, "ffn_in")
        self.ffn_out = self.add_dense(expansion * width, width, "ffn_out")

    def call(self, x: tf.Tensor, valid: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """x: [B, L, D], valid: bool[B, L, 1], seed: int32[2] | None -> [B, L, D]."""
        x += dropout(self.attention(self.attention_norm(x), valid), self.rate, fold_seed(seed, 0))
        hidden = tf.nn.gelu(self.ffn_in(self.ffn_norm(x)), approximate=True)
        return x + dropout(self.ffn_out(hidden), self.rate, fold_seed(seed, 1))


class ConvolutionBlock(Block):
    """Masked convolution along the sequence, activation, layer norm, dropout; residual if the width stays the same."""

    def __init__(self, width: int, out: int, kernel: int, rate: float, initial: Initialization, name: str) -> None:
        super().__init__(initial, name)
        self.width, self.out, self.rate = width, out, rate
        # Measured inside XLA on 2 cores, forward | with gradient, ms: [8, 80, 128] K=5 the op 1.0 | 1.9, K slices
        # side by side and one matmul 0.9 | 2.2, a sum of K matmuls 1.0 | 2.2; [8, 312, 128] K=3 the op 1.7 | 4.8,
        # slices 1.7 | 3.7. No clear winner here; GPUs have kernels for the op.
        self.convolution = self.add_convolution(width, out, kernel, "convolution")
        self.norm = self.add_norm(out, "norm")

    def call(self, x: tf.Tensor, valid: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """x: [B, L, D], valid: bool[B, L, 1], seed: int32[2] | None -> [B, L, out]."""
        hidden = self.norm(tf.nn.silu(self.convolution(apply_mask(x, valid))))
        hidden = dropout(hidden, self.rate, seed)
        return x + hidden if self.width == self.out else hidden


class TimeEmbedding(Block):
    """Embedding of the flow time: sinusoids and a two-layer perceptron (DiT, 2212.09748)."""

    def __init__(self, width: int, initial: Initialization) -> None:
        # bfloat16 would round times to 256 values.
        super().__init__(initial, "time_embedding", autocast=False)
        self.width = width
        self.first = self.add_dense(width, width, "first")
        self.second = self.add_dense(width, width, "second")

    def call(self, time: tf.Tensor) -> tf.Tensor:
        """time: float32[...] in 0..1 -> [..., D]."""
        # Scaled by 1000, like diffusion steps, so that the fastest sinusoids resolve nearby times.
        waves = sinusoids(1000.0 * tf.cast(time, tf.float32), self.width)
        return self.second(tf.nn.silu(self.first(waves)))
