"""ONNX vocoders, with a stand-in for onnxruntime."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.errors import LockstepError
from xtts.trainer.synth.vocoder import make_vocoder

HIFIGAN = mel_profile("hifigan")


@pytest.fixture
def onnx_vocoder(monkeypatch, tmp_path):
    """`onnx_vocoder(metadata, input shape)`: the path of a model that gives 256 samples of its frame's mean."""

    def install(metadata, shape):
        def run(_, inputs):
            axis = 1 if shape[1] == 80 else 2
            return [np.repeat(inputs["mel"].mean(axis=axis), 256, axis=1)[:, None]]

        class Fail(Exception):
            pass

        def session(data, providers):
            if data == b"junk":
                raise Fail("no model\nat all")
            return SimpleNamespace(
                get_modelmeta=lambda: SimpleNamespace(custom_metadata_map=metadata),
                get_inputs=lambda: [SimpleNamespace(name="mel", shape=shape)],
                run=run,
            )

        runtime, capi = ModuleType("onnxruntime"), ModuleType("onnxruntime.capi")
        state = ModuleType("onnxruntime.capi.onnxruntime_pybind11_state")
        runtime.InferenceSession, state.Fail = session, Fail
        capi.onnxruntime_pybind11_state = state
        for module in (runtime, capi, state):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        (tmp_path / "vocoder.onnx").write_bytes(b"model")
        return tmp_path / "vocoder.onnx"

    return install


@pytest.mark.parametrize("shape", [[1, 80, "T"], ["B", "T", 80]])
def test_an_onnx_vocoder_gets_the_mel_in_its_own_order(onnx_vocoder, shape):
    warnings = []
    vocoder = make_vocoder(f"onnx:{onnx_vocoder({'mel_profile': 'hifigan'}, shape)}", HIFIGAN, warnings.append)
    mel = np.linspace(-0.5, 0.5, 7)[:, None].repeat(80, axis=1).astype(np.float32)
    samples = vocoder(mel)
    np.testing.assert_allclose(samples, np.repeat(mel[:, 0], 256), atol=1e-6)
    assert not warnings


def test_a_vocoder_of_another_profile_is_refused_and_one_of_none_is_used_with_a_warning(onnx_vocoder):
    path = onnx_vocoder({"mel_profile": "vocos24"}, [1, 80, "T"])
    with pytest.raises(LockstepError, match="a vocoder for mel profile vocos24, expected hifigan, the checkpoint's"):
        make_vocoder(f"onnx:{path}", HIFIGAN, print)
    warnings = []
    make_vocoder(f"onnx:{onnx_vocoder({}, [1, 80, 'T'])}", HIFIGAN, warnings.append)
    assert "declares no mel_profile" in warnings[0]


def test_models_that_are_no_vocoder_are_refused(onnx_vocoder):
    path = onnx_vocoder({"mel_profile": "hifigan"}, [1, 100, "T"])
    with pytest.raises(LockstepError, match=r"inputs mel \[1, 100, 'T'\], expected one log-mel \[1, 80, T\]"):
        make_vocoder(f"onnx:{path}", HIFIGAN, print)(np.zeros((4, 80), np.float32))
    path.write_bytes(b"junk")
    with pytest.raises(LockstepError, match=r"not a usable ONNX model \(no model\)"):
        make_vocoder(f"onnx:{path}", HIFIGAN, print)


def test_without_onnxruntime_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "vocoder.onnx").write_bytes(b"model")
    with pytest.raises(LockstepError, match=r"pip install 'lockstep-tts\[onnx\]'"):
        make_vocoder(f"onnx:{tmp_path / 'vocoder.onnx'}", HIFIGAN, print)
