"""The exported ONNX graph speaks as TensorFlow does, in onnxruntime and in sherpa-onnx."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import build_tokenizer, learn_tokenizer
from xtts.trainer.export.export_formats import ONNX, ExportRequest
from xtts.trainer.export.onnx_graph import load_model
from xtts.trainer.export.onnx_model import tokens_file
from xtts.trainer.models.acoustic.acoustic_model import NO_CONDITIONING
from xtts.trainer.run.finish import export
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import with_optional_inputs
from xtts.trainer.stored.stored_model import open_model

ROOT = Path(__file__).parents[3]
HOP = 256
OPTIONS = SynthesisOptions(solver="euler")
"""Options of the exported folder."""


def session(path):
    return onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])


def full_session(graph):
    """With the optional inputs; graph: its bytes."""
    return onnxruntime.InferenceSession(with_optional_inputs(graph), providers=["CPUExecutionProvider"])


def inputs(ids, *, noise_scale=0.667, length_scale=1.0, **more):
    scales = {"noise_scale": noise_scale, "length_scale": length_scale}
    scales = {name: np.array([value], np.float32) for name, value in scales.items()}
    return {"x": np.array([ids], np.int64), "x_length": np.array([len(ids)], np.int64), **scales, **more}


@pytest.fixture(scope="module")
def model(moved_run):
    return load_model(open_model(moved_run))


@pytest.fixture(scope="module")
def graph(onnx_folder):
    return full_session((onnx_folder / "model.onnx").read_bytes())


@pytest.mark.parametrize("speed", [1.0, 0.8, 1.5])
def test_sentences_are_tensorflows(moved_run, model, graph, speed):
    """TensorFlow pads them to its shape."""
    (shape,) = open_model(moved_run).voice.shapes
    random = np.random.default_rng(int(10 * speed))
    noise = random.standard_normal((1, shape.frames, 80)).astype(np.float32)
    for length in (2, shape.frames // 12):
        tokens = np.zeros([1, shape.tokens], np.int32)
        tokens[0, :length] = random.integers(2, 30, length)
        mel, frames, _ = model.generate(
            tf.constant(tokens), tf.constant([length]), noise=noise, temperature=0.667,
            schedule=tf.constant(OPTIONS.schedule), speed=speed, conditioning=NO_CONDITIONING,
        )
        asked = inputs(tokens[0, :length], noise=noise, length_scale=1.0 / speed)
        expected = mel[0, : int(frames[0])].numpy().T
        np.testing.assert_allclose(graph.run(None, asked)[0], expected[np.newaxis], atol=1e-3)
        assert expected.std() > 0.1


def test_noise_and_pads_act_as_in_matcha_models(graph):
    noise = np.random.default_rng(2).standard_normal((1, 400, 80)).astype(np.float32)
    ids = [5, 9, 20, 14, 8]
    mel = graph.run(None, inputs(ids, noise=noise))[0]
    assert np.abs(graph.run(None, inputs(ids, noise=noise, noise_scale=0.0))[0] - mel).max() > 0.01
    # As sherpa-onnx gives them, and as a batch is padded.
    padded = [0, *(i for symbol in ids for i in (symbol, 0)), 0]
    np.testing.assert_array_equal(graph.run(None, inputs(padded, noise=noise))[0], mel)
    asked = inputs([*ids, 7, 7], noise=noise) | {"x_length": np.array([len(ids)])}
    np.testing.assert_array_equal(graph.run(None, asked)[0], mel)


def test_schedule_and_noise_may_be_left_out(graph):
    assert [entry.name for entry in graph.get_inputs()] == ["x", "x_length", "noise_scale", "length_scale"]
    assert [entry.name for entry in graph.get_outputs()] == ["mel", "token_frames"]
    assert {entry.name for entry in graph.get_overridable_initializers()} == {"schedule", "noise"}
    ids, noise = [5, 9, 20, 14, 8], np.random.default_rng(2).standard_normal((1, 400, 80)).astype(np.float32)
    without = graph.run(None, inputs(ids, noise=noise))[0]
    schedules = [OPTIONS.replaced(**change).schedule for change in ({}, {"nfe": 20}, {"solver": "midpoint"})]
    mels = [graph.run(None, inputs(ids, noise=noise, schedule=schedule))[0] for schedule in schedules]
    np.testing.assert_array_equal(mels[0], without)
    assert len({mel.tobytes() for mel in mels}) == 3


def test_the_noise_is_drawn_inside_by_the_seed_of_onnxruntime(onnx_folder):
    def speak(seed):
        onnxruntime.set_seed(seed)
        return session(onnx_folder / "model.onnx").run(None, inputs([5, 9, 20]))[0]

    np.testing.assert_array_equal(speak(3), speak(3))
    assert np.abs(speak(3) - speak(4)).max() > 1e-3


def test_the_code_of_the_page_speaks(onnx_folder, tmp_path):
    """With the vocoder that comes with every voice."""
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    assert len(programs) == 2
    (tmp_path / "voice").symlink_to(onnx_folder)
    for program, shown in zip(programs, ("len(samples)", "len(audio.samples)"), strict=True):
        command = [sys.executable, "-P", "-c", f"{program}\nprint({shown})"]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert int(result.stdout) % HOP == 0
    assert (tmp_path / "out.wav").stat().st_size > 1000


@pytest.mark.parametrize("voice", ["exported now", "base"])
def test_onnxruntime_warns_of_nothing_when_it_loads_it(onnx_folder, capfd, voice):
    folder = onnx_folder if voice == "exported now" else ROOT / "voices" / voice
    session(folder / "model.onnx")
    assert capfd.readouterr().err == ""


def test_metadata_are_those_of_matcha_models(onnx_folder):
    declared = session(onnx_folder / "model.onnx").get_modelmeta().custom_metadata_map
    expected = {
        "model_type": "matcha-tts", "sample_rate": "22050", "n_speakers": "1", "language": "English", "voice": "en-us",
        "pad_id": "1", "use_eos_bos": "1", "jieba": "0", "has_espeak": "0", "version": "1", "mel_profile": "hifigan",
    }
    assert expected.items() <= declared.items()
    graph = onnx.load(onnx_folder / "model.onnx")
    assert (graph.producer_name, graph.producer_version) == ("lockstep-tts", metadata.version("lockstep-tts"))
    names = sorted(path.name for path in onnx_folder.iterdir())
    assert names == [
        "config.yaml", "facts.json", "model.onnx", "profile.json", "tokenizer.json", "tokens.txt", "vocoder.onnx",
        "voice.json",
    ]


def test_tokens_of_each_kind_of_tokenizer():
    lines = tokens_file(build_tokenizer("characters", add_blank=True)).splitlines()
    assert lines[:4] == ["^ 2", "$ 3", "  4", "! 5"]
    assert "a 16" in lines
    assert not any(line.startswith("<") for line in lines)
    assert tokens_file(build_tokenizer("phonemes", add_blank=False)).splitlines()[:2] == ["^ 2", "$ 3"]
    pieces = learn_tokenizer("bpe", {"en": ["the cat and the dog and the cow"] * 3}, add_blank=False, vocabulary=60)
    table = dict(line.rsplit(" ", 1) for line in tokens_file(pieces).splitlines())
    assert int(table["\u2581the"]) == pieces.symbols.index(" the")
    assert len(set(table)) == len(pieces.symbols) - 2


def test_nothing_is_overwritten(onnx_folder, finished_run):
    with pytest.raises(LockstepError, match="already exists, expected a new folder"):
        export(finished_run[0], ExportRequest(out=onnx_folder, formats=[ONNX]))
