"""Hand-built ONNX vocoders: what HiFi-GAN and BigVGAN look like from outside."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def weight(name, values):
    return numpy_helper.from_array(np.asarray(values), name)


def save(path, nodes, inputs, outputs, weights, metadata=()):
    """Write a model; inputs and outputs: (name, type, shape)."""
    graph = helper.make_graph(
        nodes, "vocoder", [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs], weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {key: str(value) for key, value in dict(metadata).items()})
    onnx.save(model, str(path))
    return path


def hifigan(path, *, channels=80, hop=256, shape=(1, 80, "T"), kind="float", gain=1.0, metadata=()):
    """tanh(mean of the channels * 0.1) * gain, each frame `hop` times: float [1, 1, S], or int16 [1, 1, S]."""
    first = "mel"
    nodes = []
    if shape[1] != channels and shape[2] == channels:
        nodes.append(helper.make_node("Transpose", ["mel"], ["turned"], perm=[0, 2, 1]))
        first = "turned"
    nodes += [
        helper.make_node("ConvTranspose", [first, "kernel"], ["up"], strides=[hop]),
        helper.make_node("Tanh", ["up"], ["bounded"]),
        helper.make_node("Mul", ["bounded", "gain"], ["scaled" if kind == "int16" else "audio"]),
    ]
    if kind == "int16":
        nodes.append(helper.make_node("Cast", ["scaled"], ["audio"], to=TensorProto.INT16))
    weights = [
        weight("kernel", np.full((channels, 1, hop), 0.1 / channels, np.float32)), weight("gain", np.float32(gain)),
    ]
    sound = TensorProto.INT16 if kind == "int16" else TensorProto.FLOAT
    inputs, outputs = [("mel", TensorProto.FLOAT, shape)], [("audio", sound, [1, 1, "S"])]
    return save(path, nodes, inputs, outputs, weights, metadata)
