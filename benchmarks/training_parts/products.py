"""Floating-point operations of the matrix products and convolutions of a compiled function."""

from collections import Counter
from typing import Any

import numpy as np
from tensorflow.compiler.xla.service import hlo_pb2


def count_products(hlo: bytes) -> Counter[int]:
    """Operations by `PrimitiveType` of the factors; hlo: `experimental_get_compiler_ir(...)(stage="hlo_serialized")`.

    Before XLA optimises: afterwards some are calls of libraries, of other names on every device.
    """
    module = hlo_pb2.HloModuleProto.FromString(hlo)
    return _of(module.entry_computation_id, {computation.id: computation for computation in module.computations})


def _of(number: int, computations: dict[int, Any]) -> Counter[int]:
    """Operations that the result of a computation needs, in those that it calls, too."""
    instructions, found = {one.id: one for one in computations[number].instructions}, Counter[int]()
    needed = [computations[number].root_id]
    seen = set(needed)
    for one in map(instructions.__getitem__, needed):  # which grows
        fresh = set(one.operand_ids) - seen
        needed.extend(fresh)
        seen |= fresh
        factors = [instructions[operand].shape for operand in one.operand_ids[:2]]
        if one.opcode == "dot":
            summed = one.dot_dimension_numbers.lhs_contracting_dimensions
            sizes = [*one.shape.dimensions, *(factors[0].dimensions[place] for place in summed)]
            found[factors[0].element_type] += 2 * int(np.prod(sizes))
        elif one.opcode == "convolution":
            found[factors[0].element_type] += 2 * _convolved(one, *factors)
        for called in (_of(called, computations) for called in one.called_computation_ids):
            if called and one.opcode != "call":
                raise ValueError(f"how often does {one.opcode} {one.name} call its products?")
            found += called
    return found


def _convolved(one: Any, image: Any, kernel: Any) -> int:  # noqa: ANN401 - generated classes
    """Multiplications of a convolution, without those by padding and by the holes that dilation leaves."""
    names, out = one.convolution_dimension_numbers, one.shape.dimensions
    count = out[names.output_batch_dimension] * out[names.output_feature_dimension]
    count *= kernel.dimensions[names.kernel_input_feature_dimension]
    spatial = zip(names.output_spatial_dimensions, names.input_spatial_dimensions, one.window.dimensions, strict=True)
    for output, source, window in spatial:
        taps = np.arange(window.size) * window.window_dilation - window.padding_low
        places = np.arange(out[output])[:, None] * window.stride + taps
        apart = window.base_dilation
        inside = (places >= 0) & (places < image.dimensions[source] * apart) & (places % apart == 0)
        count *= int(inside.sum())
    return int(count)
