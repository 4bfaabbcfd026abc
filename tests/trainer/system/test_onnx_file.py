"""ONNX files from elsewhere: refused in one line."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_graphs import hifigan, save

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.vocoder import make_vocoder


def test_files_that_are_no_model_are_refused(tmp_path):
    path = hifigan(tmp_path / "v.onnx")
    whole = path.read_bytes()
    for junk in (b"junk", b"", whole[: len(whole) // 2]):
        path.write_bytes(junk)
        with pytest.raises(LockstepError, match=r"v\.onnx: not a usable ONNX model \("):
            make_vocoder(f"onnx:{path}", mel_profile("hifigan"), print)


def test_functions_of_the_model_itself_are_known(tmp_path):
    """As PyTorch's exporter writes them."""
    path = hifigan(tmp_path / "v.onnx", metadata={"mel_profile": "hifigan"})
    model = onnx.load(path)
    inner = helper.make_node("Tanh", ["x"], ["y"])
    model.functions.append(helper.make_function("pkg.own", "Bound", ["x"], ["y"], [inner], model.opset_import))
    model.opset_import.add(domain="pkg.own", version=1)
    model.graph.node[1].domain, model.graph.node[1].op_type = "pkg.own", "Bound"
    path.write_bytes(model.SerializeToString())
    profile = mel_profile("hifigan")
    samples = make_vocoder(f"onnx:{path}", profile, print)(np.zeros((20, 80), np.float32))
    assert samples.shape == (20 * profile.hop_samples,)


def test_a_model_that_onnxruntime_refuses_is_refused_in_one_line(tmp_path):
    nodes = [helper.make_node("Teleport", ["mel"], ["audio"])]
    path = save(tmp_path / "v.onnx", nodes, [("mel", TensorProto.FLOAT, [1, 80, "T"])],
                [("audio", TensorProto.FLOAT, [1, 1, "S"])], [])  # fmt: skip
    with pytest.raises(LockstepError, match=r"not a usable ONNX model \(.*Teleport"):
        make_vocoder(f"onnx:{path}", mel_profile("hifigan"), print)
