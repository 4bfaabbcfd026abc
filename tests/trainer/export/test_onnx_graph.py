"""ONNX graphs of models of several speakers, languages and voices."""

import numpy as np
import onnx
import pytest
import tensorflow as tf
from test_onnx_model import full_session, inputs

from xtts.shared.audio.speaker_encoder import recorded_voice
from xtts.trainer.export.onnx_graph import convert_model
from xtts.trainer.export.onnx_model import graph_metadata
from xtts.trainer.models.acoustic.networks import Conditioning
from xtts.trainer.speech.synthesis_options import SynthesisOptions

OPTIONS = SynthesisOptions(nfe=2)
IDS = [5, 9, 20, 14, 8, 2, 11]
RANDOM = np.random.default_rng(0)
NOISE = RANDOM.standard_normal((1, 200, 80)).astype(np.float32)
RECORDING = RANDOM.normal(0.0, 0.1, 40_000).astype(np.float32)


def expected(model, schedule=None, *, voice=None, **numbers):
    """TensorFlow's mel [M, T]; numbers: of the speaker and the language."""
    rows = {name: tf.constant([number]) for name, number in numbers.items()}
    mel, length, _ = model.generate(
        tf.constant([IDS]), tf.constant([len(IDS)]), noise=tf.constant(NOISE), temperature=0.5, speed=1.0,
        schedule=tf.constant(OPTIONS.schedule if schedule is None else schedule),
        conditioning=Conditioning(voice=voice, **rows),
    )
    return mel[0, : int(length[0])].numpy().T


def session_of(graph, names):
    session = full_session(graph)
    assert [entry.name for entry in session.get_inputs()] == ["x", "x_length", "noise_scale", "length_scale", *names]
    return session


def spoken(session, **more):
    given = {name: np.array(value) for name, value in more.items()}
    return session.run(None, inputs(IDS, noise_scale=0.5, noise=NOISE, **given))[0][0]


def test_the_loop_has_quick_operators_and_carries_no_weights(several_graph):
    """Runtimes prepare constants once, and have one kernel for a layer norm and one for a depthwise convolution."""
    loops = [node for node in onnx.load_from_string(several_graph).graph.node if node.op_type == "Loop"]
    bodies = [loop.attribute[0].g for loop in loops]
    (decoder,) = [i for i, body in enumerate(bodies) if any(node.op_type == "Conv" for node in body.node)]
    operators = {node.op_type for node in bodies[decoder].node}
    assert "LayerNormalization" in operators
    assert not operators & {"Sqrt", "GlobalAveragePool"}, "of norms in parts"
    assert not operators & {"Pad", "ReduceMean"}, "what no evaluation changes"
    assert [len(loops[decoder].input), len(bodies[decoder].output)] == [2 + 3, 1 + 3], "the step and two mels"


@pytest.fixture(scope="module")
def session(several_graph):
    return session_of(several_graph, ["sid", "language"])


def test_speaker_and_language_are_inputs(several, session):
    heard = set()
    for speaker, language in ((0, 0), (2, 0), (2, 1)):
        mel = spoken(session, sid=[speaker], language=[language])
        np.testing.assert_allclose(mel, expected(several[0], speaker=speaker, language=language), atol=1e-3)
        heard.add(mel.tobytes())
    assert len(heard) == 3


@pytest.mark.parametrize("solver", ["euler", "midpoint"])
def test_the_schedule_is_an_input(several, session, solver):
    schedule = SynthesisOptions(nfe=6, solver=solver).schedule
    mel = spoken(session, sid=[2], language=[1], schedule=schedule)
    np.testing.assert_allclose(mel, expected(several[0], schedule, speaker=2, language=1), atol=1e-3)
    assert mel.shape != (default := spoken(session, sid=[2], language=[1])).shape or np.abs(mel - default).max() > 0.01


@pytest.mark.long
def test_voice_and_language_can_be_fixed_in_the_graph(untrained, capsys):
    model, source = untrained("model.voice_from=recording")
    assert source.speakers == []
    recordings = [RECORDING, RECORDING, 0.1 * np.sin(np.arange(40_000, dtype=np.float32) / 20)]
    graph = convert_model(model, source, options=OPTIONS, language="fa", recordings=recordings).SerializeToString()
    assert "warning: 33% of the recording is unlike the voice taken from it" in capsys.readouterr().err
    voice = recorded_voice(recordings)[np.newaxis]
    mel = spoken(session_of(graph, []))
    np.testing.assert_allclose(mel, expected(model, voice=voice, language=1), atol=1e-3)
    for other in ({"voice": -voice, "language": 1}, {"voice": voice, "language": 0}):
        changed = expected(model, **other)
        assert mel.shape != changed.shape or np.abs(mel - changed).max() > 0.01


def test_metadata_of_several(several):
    described = graph_metadata(several[1].voice, language="fa", nfe=OPTIONS.nfe)
    assert described["n_speakers"] == "3"
    assert described["speakers"] == '["ann", "bo", "cy"]'
    assert (described["language"], described["voice"]) == ("Persian", "fa")
    assert described["pad_id"] == "1", "the blank, which sherpa-onnx puts around every token"
