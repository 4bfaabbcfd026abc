"""A vocoder behind a graph that only hands the mel on: the samples are those of the vocoder alone."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx_graphs import hifigan, save, weight

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer.synth.export.joined_vocoder import AUDIO, OPSET, join, load_joinable
from xtts.trainer.synth.vocoder.onnx_vocoder import OnnxVocoder

HIFIGAN = mel_profile("hifigan")
MEL = np.random.default_rng(0).normal(-3.0, 2.0, (30, 80)).astype(np.float32)


def of_precision(path, kind):
    """A vocoder whose mel and samples are of another type of floats."""
    nodes = [
        helper.make_node("Mul", ["mel", "one"], ["same"]),  # of this type alone: a Cast takes any
        helper.make_node("Cast", ["same"], ["mel_in_float"], to=TensorProto.FLOAT),
        helper.make_node("ConvTranspose", ["mel_in_float", "kernel"], ["up"], strides=[256]),
        helper.make_node("Tanh", ["up"], ["bounded"]),
        helper.make_node("Cast", ["bounded"], ["audio"], to=kind),
    ]
    kernel = weight("kernel", np.full((80, 1, 256), 0.1 / 80, np.float32))
    one = weight("one", np.ones([1], helper.tensor_dtype_to_np_dtype(kind)))
    return save(path, nodes, [("mel", kind, [1, 80, "T"])], [("audio", kind, [1, 1, "S"])], [kernel, one])


def joined_to_nothing(path):
    """The graph from mel [1, 80, T] to the samples of the vocoder of a file."""
    node = helper.make_node("Identity", ["given"], ["mel"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 80, "T"]) for name in ("given", "mel")]
    graph = helper.make_graph([node], "acoustic", ends[:1], ends[1:])
    acoustic = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return join(acoustic, "mel", load_joinable(path, HIFIGAN, lambda _: None), 80)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shape": ("B", "T", 80)},
        {"shape": ("B", "C", "T"), "opset": 13},
        {"kind": "int16", "gain": 32_767.0},
        {"gain": 2.0},
        {"opset": 18},
    ],
)
def test_every_kind_of_vocoder_joins(tmp_path, options):
    samples, expected = joined_and_alone(hifigan(tmp_path / "v.onnx", **options))
    np.testing.assert_allclose(samples, expected, atol=1e-5)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_vocoders_of_other_precisions_join(tmp_path, kind):
    samples, expected = joined_and_alone(of_precision(tmp_path / "v.onnx", kind))
    np.testing.assert_allclose(samples, expected, atol=1e-3)


def joined_and_alone(path):
    """The samples of a vocoder in a joined graph, and those of the vocoder alone, which are not silent."""
    graph = joined_to_nothing(path)
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [entry.name for entry in session.get_outputs()] == [AUDIO]
    samples = session.run(None, {"given": MEL.T[None]})[0]
    expected = OnnxVocoder(path, HIFIGAN, lambda _: None)(MEL)
    assert samples.dtype == np.float32
    assert samples.shape == (1, len(expected))
    assert np.abs(expected).max() > 0.1
    return samples[0], expected


def test_weights_among_the_inputs_stay_weights(tmp_path):
    """As files of IR version 3 have them."""
    path = hifigan(tmp_path / "v.onnx")
    model = onnx.load(path)
    model.ir_version = 3
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    path.write_bytes(model.SerializeToString())
    assert [entry.name for entry in joined_to_nothing(path).graph.input] == ["given"]
