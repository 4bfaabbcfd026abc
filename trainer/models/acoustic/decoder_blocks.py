"""Blocks of the decoder: ConvNeXt and self-attention with adaptive norms, and levels of a lower frame rate.

Letters: B batch, T frames, D width, C width of the condition, K kernel. `valid` is bool[B, T, 1], true inside a clip's
length, or None in an exported graph, where nothing is padded.
"""

import math
from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from xtts.shared.model_config import ModelConfig
from xtts.trainer.models.layers import Block, Initialization, SelfAttention, apply_mask, axis_size, normalise


class DepthwiseConvolution(Block):
    """Convolution of each channel with its own filter of K taps."""

    def __init__(self, width: int, kernel: int, initial: Initialization) -> None:
        super().__init__(initial, "depthwise")
        self.width, self.taps = width, kernel
        limit = math.sqrt(3.0 / kernel)
        self.initializer = keras.initializers.RandomUniform(-limit, limit, seed=next(initial.seeds))

    def build(self) -> None:
        """Create the weights."""
        self.kernel = self.add_weight(shape=(self.taps, self.width), initializer=self.initializer, name="kernel")
        self.bias = self.add_weight(shape=(self.width,), initializer="zeros", name="bias")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """x: [B, T, D] -> [B, T, D], padded with zeros at both ends."""
        if x.shape[1] is None:  # in an exported graph, whose runtimes have a kernel for it
            kernel = tf.reshape(self.kernel, [1, self.taps, self.width, 1])
            filtered = tf.nn.depthwise_conv2d(tf.expand_dims(x, 1), kernel, [1, 1, 1, 1], "SAME")
            return tf.squeeze(tf.nn.bias_add(filtered, self.bias), 1)
        filtered = convolve_depthwise(tf.cast(x, tf.float32), tf.cast(self.kernel, tf.float32))
        return tf.cast(filtered, x.dtype) + self.bias


@tf.custom_gradient  # type: ignore[untyped-decorator]
def convolve_depthwise(
    x: tf.Tensor, kernel: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Filter each channel: float32[B, T, D], [K, D] -> [B, T, D], padded with zeros at both ends."""
    # A sum of K shifted products fuses into one loop. Measured inside XLA on 2 cores, forward | with gradient,
    # ms, K=7: [8, 312, 128] shifts 0.6 | 2.3, tf.nn.depthwise_conv2d 7.6 | 18, a dense convolution with a diagonal
    # kernel 1.6 | 4.7; [8, 312, 256] shifts 0.5 | 4.9, depthwise_conv2d 29 | 69, dense 11 | 32.
    taps = range(kernel.shape[0])

    def shifted(signal: tf.Tensor) -> list[tf.Tensor]:
        side = len(taps) // 2
        padded = tf.pad(signal, [[0, 0], [side, side], [0, 0]])
        # Ends counted from the back suit a dynamic size too: with k + size an ONNX loop has three times the nodes.
        return [padded[:, k : (k - 2 * side) or None] for k in taps]

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # One reduction for all taps; differentiated tap by tap, each tap takes several kernels.
        products = tf.stack([shift * upstream for shift in shifted(x)])
        x_gradient = tf.add_n([shift * kernel[-1 - k] for k, shift in enumerate(shifted(upstream))])
        return x_gradient, tf.reduce_sum(products, axis=[1, 2])

    return tf.add_n([shift * kernel[k] for k, shift in enumerate(shifted(x))]), gradient


class AdaptiveNorm(Block):
    """Layer norm whose scale and shift come from a condition (DiT, 2212.09748), with a gate for AdaLN-zero."""

    def __init__(self, width: int, condition_width: int, initial: Initialization, *, gated: bool) -> None:
        super().__init__(initial, "norm")
        self.width, outputs = width, (3 if gated else 2) * width
        # Zeros at first: with a closed gate every block starts as the identity.
        self.modulation = self.add_dense(condition_width, outputs, "modulation", kernel_initializer="zeros")

    def call(self, x: tf.Tensor, condition: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """x: [B, T, D], condition: [B, C] -> (normed, scaled and shifted [B, T, D], gate [B, 1, D or 0])."""
        modulation = tf.expand_dims(self.modulation(condition), 1)
        scale, shift, gate = tf.split(modulation, [self.width, self.width, -1], axis=-1)
        normed = tf.cast(normalise(tf.cast(x, tf.float32)), x.dtype)
        return normed * (1.0 + scale) + shift, gate


class DecoderBlock(Block):
    """ConvNeXt block (2201.03545) with AdaLN-zero in place of its norm and layer scale."""

    def __init__(
        self, width: int, kernel: int, expansion: int, condition_width: int, initial: Initialization, name: str
    ) -> None:
        super().__init__(initial, name)
        self.depthwise = self.add_layer(DepthwiseConvolution(width, kernel, initial))
        self.norm = self.add_layer(AdaptiveNorm(width, condition_width, initial, gated=True))
        self.ffn_in = self.add_dense(width, expansion * width, "ffn_in")
        self.ffn_out = self.add_dense(expansion * width, width, "ffn_out")

    def call(self, x: tf.Tensor, valid: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
        """x: [B, T, D], valid: bool[B, T, 1], condition: [B, C] -> [B, T, D]."""
        hidden, gate = self.norm(self.depthwise(apply_mask(x, valid)), condition)
        hidden = self.ffn_out(tf.nn.gelu(self.ffn_in(hidden), approximate=True))
        return x + gate * hidden


class AttentionBlock(Block):
    """Rotary self-attention among all positions of a clip, with AdaLN-zero."""

    def __init__(self, width: int, heads: int, condition_width: int, initial: Initialization, name: str) -> None:
        super().__init__(initial, name)
        self.norm = self.add_layer(AdaptiveNorm(width, condition_width, initial, gated=True))
        self.attention = self.add_layer(SelfAttention(width, heads, initial))

    def call(self, x: tf.Tensor, valid: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
        """x: [B, T, D], valid: bool[B, T, 1], condition: [B, C] -> [B, T, D]."""
        hidden, gate = self.norm(x, condition)
        return x + gate * self.attention(hidden, valid)


def fold(x: tf.Tensor, rate: int) -> tf.Tensor:
    """Group every `rate` frames, padding the last group with zeros: [B, T, D] -> [B, ceil(T / rate), rate, D]."""
    batch, frames, width = axis_size(x, 0), axis_size(x, 1), x.shape[-1]
    padded = tf.concat([x, tf.zeros([batch, rate - 1, width], x.dtype)], axis=1)  # ONNX pads by a dozen operators
    whole = (frames + rate - 1) // rate * rate  # not -(-frames // rate): ONNX divides towards zero
    return tf.reshape(padded[:, :whole], [batch, -1, rate, width])


class CoarseLevel(Block):
    """Blocks at a lower frame rate, between down- and up-sampling, with a skip connection around them.

    Each position stands for `rate` frames: it is a projection of all their channels, and is projected back to them.
    """

    def __init__(
        self, config: ModelConfig, depth: int, above_width: int, condition_width: int, initial: Initialization
    ) -> None:
        super().__init__(initial, f"level_{depth}")
        level = config.decoder_levels[depth]
        width, self.rate, self.above_width = level.width, level.rate, above_width
        kernel, heads, expansion = config.decoder_kernel, level.heads, level.expansion
        self.down = self.add_dense(level.rate * above_width, width, "down")
        self.up = self.add_dense(width, level.rate * above_width, "up")
        self.blocks: list[DecoderBlock | AttentionBlock] = []
        for i in range(level.blocks):
            block = DecoderBlock(width, kernel, expansion, condition_width, initial, f"block_{i}")
            self.blocks.append(self.add_layer(block))
            if heads:
                attention = AttentionBlock(width, heads, condition_width, initial, f"attention_{i}")
                self.blocks.append(self.add_layer(attention))
        self.below = None
        if depth + 1 < len(config.decoder_levels):
            self.below = self.add_layer(CoarseLevel(config, depth + 1, width, condition_width, initial))

    def call(self, x: tf.Tensor, valid: tf.Tensor, condition: tf.Tensor, text: tf.Tensor | None = None) -> tf.Tensor:
        """x: [B, T, A] of the level above, text: [B, T / rate, D] or None, others as in DecoderBlock -> [B, T, A]."""
        batch, frames, groups = axis_size(x, 0), axis_size(x, 1), fold(apply_mask(x, valid), self.rate)
        low = self.down(tf.reshape(groups, [batch, -1, self.rate * self.above_width]))
        if text is not None:
            low += text
        # Padding follows the clip: the first frame of a group decides.
        low_valid = None if valid is None else valid[:, :: self.rate]
        low = apply_around(self.below, self.blocks, low, low_valid, condition)
        return x + tf.reshape(self.up(low), [batch, -1, self.above_width])[:, :frames]


def apply_around(
    coarse: CoarseLevel | None, blocks: Sequence[DecoderBlock | AttentionBlock], x: tf.Tensor, valid: tf.Tensor,
    condition: tf.Tensor, text: tf.Tensor | None = None,
) -> tf.Tensor:
    """Apply the first half of the blocks, the coarse level if any, then the other half; arguments as in CoarseLevel."""
    middle = (len(blocks) + 1) // 2
    for block in blocks[:middle]:
        x = block(x, valid, condition)
    if coarse is not None:
        x = coarse(x, valid, condition, text)
    for block in blocks[middle:]:
        x = block(x, valid, condition)
    return x
