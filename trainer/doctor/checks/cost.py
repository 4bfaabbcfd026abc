"""FLOPs of a step, counted in XLA's program, and the FLOP/s that a matrix product reaches on this device."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from xtts.trainer.system.device import accelerator

_SECONDS = 0.3
"""Minimum duration of the matmul measurement."""
_CPU_SIDE, _GPU_SIDE = 1024, 8192


def step_flops(step: Callable[..., tf.Tensor], signature: Sequence[tf.TensorSpec]) -> int:
    """FLOPs of a step: two per multiply-add of its matrix products and convolutions, backward pass included.

    TensorFlow exposes no cost analysis, so this applies XLA's rules (HloCostAnalysis: a product counts its contracted
    elements, a convolution its positions inside the input) to the program that TensorFlow hands to XLA.
    """
    from tensorflow.compiler.xla.service import hlo_pb2

    serialized = step.experimental_get_compiler_ir(*signature)(stage="hlo_serialized")  # type: ignore[attr-defined]
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    computations: dict[int, Any] = {computation.id: computation for computation in module.computations}
    entry: int = module.entry_computation_id
    return _flops(computations[entry], computations)


def _flops(computation: Any, computations: dict[int, Any]) -> int:  # noqa: ANN401 - a protocol buffer
    shapes = {instruction.id: list(instruction.shape.dimensions) for instruction in computation.instructions}
    total: int = 0
    for instruction in computation.instructions:
        operands = [shapes[number] for number in instruction.operand_ids]
        if instruction.opcode == "dot":
            contracted = instruction.dot_dimension_numbers.lhs_contracting_dimensions
            total += 2 * math.prod(shapes[instruction.id]) * math.prod(operands[0][axis] for axis in contracted)
        elif instruction.opcode == "convolution":
            total += _convolution_flops(instruction, shapes[instruction.id], *operands)
        elif instruction.opcode in ("call", "while", "conditional", "fusion"):
            inner = [computations[number] for number in instruction.called_computation_ids]
            times = _trips(inner, computations) if instruction.opcode == "while" else 1
            total += times * sum(_flops(called, computations) for called in inner)
    return total


def _convolution_flops(instruction: Any, output: list[int], source: list[int], kernel: list[int]) -> int:  # noqa: ANN401
    names = instruction.convolution_dimension_numbers
    positions: int = 1
    for i, window in enumerate(instruction.window.dimensions):
        length = (source[names.input_spatial_dimensions[i]] - 1) * window.base_dilation + 1
        outer = np.arange(output[names.output_spatial_dimensions[i]])[:, None] * window.stride - window.padding_low
        places = outer + np.arange(window.size)[None] * window.window_dilation
        inside = (places >= 0) & (places < length) & (places % window.base_dilation == 0)
        positions *= int(inside.sum())
    rest = output[names.output_batch_dimension] * output[names.output_feature_dimension]
    channels, groups = kernel[names.kernel_input_feature_dimension], int(instruction.batch_group_count)
    flops: int = 2 * positions * rest * channels // max(groups, 1)
    return flops


def _trips(inner: list[Any], computations: dict[int, Any]) -> int:
    """Trip count of a loop whose condition compares with a constant; 1 for others, as in XLA's own analysis.

    The condition is the called computation that returns a boolean.
    """
    truth = 1  # PRED of xla_data.proto
    bounds = []
    for computation in inner:
        root = next(i for i in computation.instructions if i.id == computation.root_id)
        if root.shape.element_type == truth:
            bounds += [n for i in _instructions(computation, computations) for n in i.literal.s32s]
    return max(bounds, default=1)


def _instructions(computation: Any, computations: dict[int, Any]) -> Iterator[Any]:  # noqa: ANN401
    for instruction in computation.instructions:
        yield instruction
        for number in instruction.called_computation_ids:
            yield from _instructions(computations[number], computations)


def matmul_ceiling(dtype: str) -> float:
    """FLOP/s of a large compiled matrix product of `dtype` on this device: the best of a few rounds."""
    side = _GPU_SIDE if accelerator() else _CPU_SIDE
    product = tf.function(lambda x: tf.reduce_sum(tf.linalg.matmul(x, x)), jit_compile=True)
    x = tf.cast(tf.fill([side, side], 0.01), dtype)
    product(x).numpy()  # compiled here
    rounds: list[float] = []
    while sum(rounds) < _SECONDS or len(rounds) < 3:
        began = time.perf_counter()
        product(x).numpy()
        rounds.append(time.perf_counter() - began)
    return 2 * side**3 / min(rounds)
