"""ONNX vocoders, run by onnxruntime on graphs built by hand; what is no model is refused in one line."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_graphs import hifigan, save, weight
from tables import cases

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.vocoder import make_vocoder

CASES = cases(__file__)

HIFIGAN = mel_profile("hifigan")
STATED, INT32 = {"mel_profile": "hifigan"}, TensorProto.INT32


def load(path, profile=HIFIGAN, warn=print):
    return make_vocoder(f"onnx:{path}", profile, warn)


def ramp():
    """float32[7, 80], the same in all channels."""
    return np.linspace(-3, 3, 7, dtype=np.float32)[:, None].repeat(80, axis=1)


@pytest.mark.parametrize("shape", [(1, 80, "T"), ("B", "T", 80), ("B", "C", "T"), (None, None, None)])
@pytest.mark.parametrize(("kind", "gain", "scale"), [("float", 1.0, 1.0), ("int16", 32_767.0, 32_767 / 32_768)])
def test_a_vocoder_of_samples_gets_the_mel_in_its_own_order(tmp_path, shape, kind, gain, scale):
    warnings, mel = [], ramp()
    path = hifigan(tmp_path / "v.onnx", shape=shape, kind=kind, gain=gain, metadata=STATED)
    samples = load(path, warn=warnings.append)(mel)
    assert samples.dtype == np.float32
    np.testing.assert_allclose(samples, np.repeat(np.tanh(0.1 * mel[:, 0]), 256) * scale, atol=1 / 30_000)
    assert not warnings


def test_a_vocoder_without_a_profile_gets_a_warning_and_clips(tmp_path):
    warnings = []
    samples = load(hifigan(tmp_path / "v.onnx", gain=2.0), warn=warnings.append)(ramp() * 2)
    assert "has no mel_profile metadata; assuming hifigan" in warnings[0]
    assert samples.max() == 1.0
    assert samples.min() == -1.0


@pytest.mark.parametrize(("options", "message"), CASES["refused"])
def test_a_model_that_is_no_vocoder_of_the_profile_is_refused(tmp_path, options, message):
    path = hifigan(tmp_path / "v.onnx", **options)
    with pytest.raises(LockstepError, match=message):
        load(path, warn=lambda _: None)


def test_every_output_is_checked_not_only_the_first(tmp_path):
    """Finite for silence, infinite for loud mels."""
    nodes = [
        helper.make_node("ConvTranspose", ["mel", "kernel"], ["up"], strides=[256]),
        helper.make_node("Exp", ["up"], ["audio"]),
    ]
    kernel = weight("kernel", np.full((80, 1, 256), 1.0, np.float32))
    path = save(tmp_path / "v.onnx", nodes, [("mel", TensorProto.FLOAT, [1, 80, "T"])],
                [("audio", TensorProto.FLOAT, [1, 1, "S"])], [kernel])
    vocoder = load(path)
    with pytest.raises(LockstepError, match="256 of 512 samples not finite"):
        vocoder(np.stack([np.full(80, -1.0), np.full(80, 2.0)]).astype(np.float32))


@pytest.mark.parametrize(("kind", "options", "message"), [
    ("Cast", {"to": INT32}, r"outputs audio \[1, 80, 'T'\] tensor\(.*expected samples, float or int16"),
    ("Teleport", {}, r"not a usable ONNX model \(.*Teleport"),
])
def test_outputs_of_another_type_and_what_onnxruntime_refuses_are_refused(tmp_path, kind, options, message):
    shape = [1, 80, "T"]
    nodes, outputs = [helper.make_node(kind, ["mel"], ["audio"], **options)], [("audio", INT32, shape)]
    path = save(tmp_path / "v.onnx", nodes, [("mel", TensorProto.FLOAT, shape)], outputs, [])
    with pytest.raises(LockstepError, match=message):
        load(path)


def test_files_that_are_no_model_are_refused(tmp_path):
    path = hifigan(tmp_path / "v.onnx")
    whole = path.read_bytes()
    for junk in (b"junk", b"", whole[: len(whole) // 2]):
        path.write_bytes(junk)
        with pytest.raises(LockstepError, match=r"v\.onnx: not a usable ONNX model \("):
            load(path)


def test_functions_of_the_model_itself_are_known(tmp_path):
    """As PyTorch's exporter writes them."""
    path = hifigan(tmp_path / "v.onnx", metadata={"mel_profile": "hifigan"})
    model = onnx.load(path)
    inner = helper.make_node("Tanh", ["x"], ["y"])
    model.functions.append(helper.make_function("pkg.own", "Bound", ["x"], ["y"], [inner], model.opset_import))
    model.opset_import.add(domain="pkg.own", version=1)
    model.graph.node[1].domain, model.graph.node[1].op_type = "pkg.own", "Bound"
    path.write_bytes(model.SerializeToString())
    assert load(path)(np.zeros((20, 80), np.float32)).shape == (20 * HIFIGAN.hop_samples,)
