"""The vocoder as an ONNX graph, and the voice that has one in its folder."""

import numpy as np
import onnx
import pytest

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.model_config import VocoderConfig
from xtts.trainer.export.onnx_graph import vocoder_graph
from xtts.trainer.models.vocoder.vocoder import Vocoder
from xtts.trainer.speech.vocoder import OUR_VOCODER, VOCODER_FILE, make_vocoder

PROFILE = mel_profile("hifigan")
MEL = np.random.default_rng(0).normal(-5.0, 2.0, (30, 80)).astype(np.float32)


@pytest.fixture(scope="module")
def vocoder():
    model = Vocoder(VocoderConfig(width=16, blocks=1, discriminator_width=8), PROFILE)
    for weight in model.trainable_variables:
        # Trained ones: a norm that neither scales nor shifts is written in parts. Float16: others turn phases a little.
        weight.assign((weight.numpy() + 0.01).astype(np.float16))
    return model


@pytest.fixture(scope="module")
def voice(vocoder, tmp_path_factory):
    """Folder of a voice with nothing but its vocoder."""
    folder = tmp_path_factory.mktemp("voice")
    (folder / VOCODER_FILE).write_bytes(vocoder_graph(vocoder).SerializeToString())
    return folder


def test_the_graph_gives_the_samples_of_the_model(vocoder, voice):
    graph = onnx.load(voice / VOCODER_FILE)
    assert graph.opset_import[0].version == 17
    assert not {node.op_type for node in graph.graph.node} & {"STFT", "DFT", "RandomNormal", "RandomNormalLike"}
    made_by = {name: node.op_type for node in graph.graph.node for name in node.output}
    gathered = {made_by[node.input[0]] for node in graph.graph.node if node.op_type == "Gather"}
    assert gathered <= {"Cast"}, "numbers of shapes alone: the bins of weights are sorted already"
    assert [node.op_type for node in graph.graph.node].count("LayerNormalization") == 2
    assert graph.ByteSize() < 1e6
    speak = make_vocoder(f"onnx:{voice / VOCODER_FILE}", PROFILE, pytest.fail)
    expected = np.clip(vocoder.vocode(MEL[None])[0], -1, 1)
    # The waves of its Fourier transforms are float16, too: 60 dB below the loudest sample.
    np.testing.assert_allclose(speak(MEL), expected, atol=3e-3 * np.abs(expected).max())
    assert len(speak(MEL[:1])) == PROFILE.hop_samples


def samples_of(name, profile=PROFILE, voice=None):
    return make_vocoder(name, profile, pytest.fail, voice=voice)(MEL)


def test_a_voice_speaks_with_the_vocoder_in_its_folder_or_else_with_ours(voice, tmp_path):
    np.testing.assert_array_equal(samples_of(None, voice=voice), samples_of(f"onnx:{voice / VOCODER_FILE}"))
    for folder in (tmp_path, None):
        np.testing.assert_array_equal(samples_of(None, voice=folder), samples_of(f"onnx:{OUR_VOCODER}"))


def test_griffin_lim_speaks_on_request_and_for_other_mel_profiles(voice):
    np.testing.assert_array_equal(samples_of("griffinlim", voice=voice), reconstruct(MEL, PROFILE))
    other = mel_profile("tacotron2")
    np.testing.assert_array_equal(samples_of(None, other), reconstruct(MEL, other))
