"""A vocoder in ONNX for the tests, built by hand."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HOP = 256


def write_vocoder(path, *, channels=80, hop=HOP, by_frames=False, opset=17, outputs=1, **metadata):
    """A vocoder of one layer, in the manner of HiFi-GAN: [1, M, T] or [1, T, M] -> [1, 1, S]."""
    filters = np.random.default_rng(0).normal(0.0, 0.02, (channels, 1, hop)).astype(np.float32)
    shape, turned = ["B", channels, "T"], "mel"
    nodes = []
    if by_frames:
        shape, turned = ["B", "T", channels], "by_channels"
        nodes.append(helper.make_node("Transpose", ["mel"], [turned], perm=[0, 2, 1]))
    nodes.append(helper.make_node("ConvTranspose", [turned, "filters"], ["wave"], strides=[hop], kernel_shape=[hop]))
    names = [f"audio_{i}" for i in range(outputs)]
    nodes += [helper.make_node("Tanh", ["wave"], [name]) for name in names]
    graph = helper.make_graph(
        nodes, "vocoder", [helper.make_tensor_value_info("mel", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 1, "S"]) for name in names],
        [numpy_helper.from_array(filters, "filters")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)
    helper.set_model_props(model, {"model_type": "hifigan", "sample_rate": "22050", **metadata})
    onnx.save(model, path)
    return path
