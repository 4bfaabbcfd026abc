"""ONNX graphs of models of several speakers, languages and voices."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from xtts.shared.config_files import load_config
from xtts.shared.text.tokenizer import CHARACTERS
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.evaluation.voice_description import Shape, Symbols, Voice
from xtts.trainer.model.acoustic_model import MEAN, AcousticModel, MelScale
from xtts.trainer.model.conditioning import Conditioning, Vocabularies
from xtts.trainer.model.duration_flow import Timing
from xtts.trainer.model.sampling import Sampling
from xtts.trainer.model.sampling_schedule import SOLVERS
from xtts.trainer.reporting.run_folder import RunFolder
from xtts.trainer.synth.export.onnx_graph import convert_model
from xtts.trainer.synth.export.onnx_tokens import metadata
from xtts.trainer.synth.voice_source import Source

FRAMES = 96
OPTIONS = SynthesisOptions(steps=2)
IDS = [5, 9, 20, 14, 8, 2, 11]
NOISE = np.random.default_rng(0).standard_normal((1, FRAMES, 80)).astype(np.float32)


@pytest.fixture
def several(micro):
    """`several(voice_latents, *assignments)`: (a model of three speakers and two languages, its source)."""

    def make(voice_latents, *more, speaker_table=False):
        latents = [*more, f"model.voice_latents={voice_latents}", "model.voice_frames=40", "model.voice_width=16"]
        latents.append(f"model.voice_speaker_table={str(speaker_table).lower()}")
        config = load_config("tiny", assignments=[*micro, *latents]).model
        symbols = Symbols(kind="characters", add_blank=True, symbols=list(CHARACTERS), languages=["en", "fa"])
        voice = Voice(
            profile="hifigan", mel_mean=-5.0, mel_deviation=2.0, tokenizer=symbols, speakers=["ann", "bo", "cy"],
            shapes=[Shape(tokens=12, frames=FRAMES)],
        )  # fmt: skip
        model = AcousticModel(config, Vocabularies(len(CHARACTERS), speakers=3, languages=2), MelScale(80, -5.0, 2.0))
        random = np.random.default_rng(1)
        for weight in model.trainable_variables:
            weight.assign_add(random.normal(0.0, 0.1, weight.shape).astype(np.float32))
        place = Path("nowhere")
        return model, Source(checkpoint=place, run=RunFolder(place), model=config, voice=voice)

    return make


def expected(model, sampling=None, timing=MEAN, **conditioning):
    mel, frames, _ = model.generate(
        tf.constant([IDS]), tf.constant([len(IDS)]), noise=tf.constant(NOISE), temperature=0.5, speed=1.0,
        sampling=sampling or Sampling(tf.constant(OPTIONS.schedule)), conditioning=Conditioning(**conditioning),
        timing=timing,
    )  # fmt: skip
    assert frames[0] <= FRAMES
    return mel[0, : int(frames[0])].numpy().T


def spoken(graph, names, **more):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [entry.name for entry in session.get_inputs()] == ["x", "x_length", "noise_scale", "length_scale", *names]
    given = {
        "x": np.array([IDS]), "x_length": np.array([len(IDS)]), "noise_scale": np.array([0.5], np.float32),
        "length_scale": np.ones([1], np.float32), "noise": NOISE,
    }  # fmt: skip
    return session.run(None, given | {name: np.array(value) for name, value in more.items()})[0][0]


def test_speaker_and_language_are_inputs(several):
    model, source = several(0)
    graph = convert_model(model, source, options=OPTIONS, language=None, references=[])
    heard = set()
    for speaker, language in ((0, 0), (2, 0), (2, 1)):
        mel = spoken(graph, ["sid", "language"], sid=[speaker], language=[language])
        ids = {"speaker": tf.constant([speaker]), "language": tf.constant([language])}
        np.testing.assert_allclose(mel, expected(model, **ids), atol=1e-3)
        heard.add(mel.tobytes())
    assert len(heard) == 3


def test_schedule_and_guidance_are_inputs_and_guidance_zero_is_the_graph_without(several):
    model, source = several(0)
    graph = convert_model(model, source, options=OPTIONS, language=None, references=[])
    rows, heard = {"sid": [2], "language": [1]}, []
    for solver, guidance in [*((solver, 0.0) for solver in SOLVERS), ("midpoint", 1.5)]:
        schedule = SynthesisOptions(steps=6, solver=solver, sway=-0.8).schedule
        asked = {"schedule": schedule, "guidance": np.array([guidance], np.float32)}
        heard.append(spoken(graph, ["sid", "language"], **rows, **asked))
        sampling = Sampling(tf.constant(schedule), *((tf.constant(guidance), 2) if guidance else ()))
        wanted = expected(model, sampling, speaker=tf.constant([2]), language=tf.constant([1]))
        np.testing.assert_allclose(heard[-1], wanted, atol=1e-3)
    assert len({mel.tobytes() for mel in heard}) == 4
    model.condition_dropout = 0.0
    plain = convert_model(model, source, options=OPTIONS, language=None, references=[])
    assert "guidance" not in {part.name for part in plain.graph.initializer}
    mels = [spoken(made, ["sid", "language"], **rows) for made in (graph, plain)]
    np.testing.assert_array_equal(*mels)


def test_drawn_durations_go_with_guidance(several):
    model, source = several(0, "model.duration_model=flow")
    graph = convert_model(model, source, options=OPTIONS, language=None, references=[])
    start = np.random.default_rng(3).standard_normal((1, len(IDS))).astype(np.float32)
    timing = Timing(frames=tf.constant([0]), start=tf.constant(start), drawn=tf.constant(True))
    guided = Sampling(tf.constant(OPTIONS.schedule), tf.constant(1.5), 2)
    rows = {"speaker": tf.constant([2]), "language": tf.constant([1])}
    wanted = expected(model, guided, timing=timing, **rows)
    asked = {"sid": [2], "language": [1], "guidance": np.array([1.5], np.float32), "duration_start": start}
    np.testing.assert_allclose(spoken(graph, ["sid", "language"], **asked), wanted, atol=1e-3)
    assert wanted.shape != expected(model, guided, **rows).shape  # the means are others


def test_a_voice_and_a_language_are_fixed_in_the_graph(several):
    model, source = several(4)
    reference = np.random.default_rng(2).normal(-5.0, 2.0, (100, 80)).astype(np.float32)
    graph = convert_model(model, source, options=OPTIONS, language="fa", references=[reference])
    crops = [reference[:40], reference[40:80], reference[80:]]
    padded = [np.pad(crop, ((0, 40 - len(crop)), (0, 0)))[np.newaxis] for crop in crops]
    latents = [model.encode_reference(mel, tf.constant([len(crop)])) for mel, crop in zip(padded, crops, strict=True)]
    voice = tf.add_n(latents) / len(latents)
    mel = spoken(graph, [])
    np.testing.assert_allclose(mel, expected(model, voice=voice, language=tf.constant([1])), atol=1e-3)
    other = expected(model, voice=voice, language=tf.constant([0]))
    assert mel.shape != other.shape or np.abs(mel - other).max() > 0.01


def test_a_speaker_is_an_input_beside_a_fixed_voice(several):
    model, source = several(4, speaker_table=True)
    assert (source.speakers, source.speaker_number("cy")) == (["ann", "bo", "cy"], 2)
    reference = np.random.default_rng(2).normal(-5.0, 2.0, (40, 80)).astype(np.float32)
    graph = convert_model(model, source, options=OPTIONS, language="en", references=[reference])
    ids = {"speaker": tf.constant([2]), "language": tf.constant([0])}
    voice = model.encode_reference(reference[np.newaxis], tf.constant([40]))
    np.testing.assert_allclose(spoken(graph, ["sid"], sid=[2]), expected(model, voice=voice, **ids), atol=1e-3)


def test_metadata_of_several(several):
    _, source = several(0)
    described = metadata(source.voice, language="fa", steps=OPTIONS.steps)
    assert described["n_speakers"] == "3"
    assert described["speakers"] == '["ann", "bo", "cy"]'
    assert (described["language"], described["voice"]) == ("Persian", "fa")
    assert described["pad_id"] == "1", "the blank, which sherpa-onnx puts around every token"
