"""The exported ONNX graph speaks as TensorFlow does, in onnxruntime and in sherpa-onnx."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf
from onnx_graphs import VOCOS_METADATA, hifigan, vocos

from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import build_tokenizer, learn_tokenizer
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.model.acoustic_model import NOBODY
from xtts.trainer.synth import tensorflow_synthesizer as tensorflow_synthesizer_module
from xtts.trainer.synth.cli import main
from xtts.trainer.synth.export import onnx_graph, onnx_model
from xtts.trainer.synth.export.export_command import ONNX, export
from xtts.trainer.synth.export.model_card import CardOptions
from xtts.trainer.synth.export.onnx_model import OnnxOptions, tokens_file

HOP = 256
OPTIONS = SynthesisOptions(solver="euler")
"""Of the exported folder."""
SHERPA = {"model_type": "hifigan", "sample_rate": 22_050}
"""What sherpa-onnx reads of a vocoder."""

STRANGER = """
import sys
import numpy as np
import onnxruntime
import sherpa_onnx

folder, vocoder = sys.argv[1:]
model = sherpa_onnx.OfflineTtsModelConfig(matcha=sherpa_onnx.OfflineTtsMatchaModelConfig(
    acoustic_model=f"{folder}/model.onnx", vocoder=vocoder, tokens=f"{folder}/tokens.txt", noise_scale=0.0))
config = sherpa_onnx.OfflineTtsConfig(model=model)
assert config.validate()
tts = sherpa_onnx.OfflineTts(config)
asked = sherpa_onnx.GenerationConfig()
asked.phoneme_codepoints = [[ord(letter) for letter in "hello there"]]
asked.silence_scale = 1.0
spoken = tts.generate("", asked)
assert "tensorflow" not in sys.modules and not any(name.startswith("xtts") for name in sys.modules)
print(spoken.sample_rate, tts.num_speakers)
np.save("spoken.npy", np.array(spoken.samples, np.float32))
"""


@pytest.fixture(scope="session")
def vocoder(tmp_path_factory):
    return hifigan(tmp_path_factory.mktemp("vocoder") / "vocoder.onnx", shape=("B", "T", 80), opset=13)


@pytest.fixture(scope="session")
def with_vocoder(moved_run, onnx_folder, call, vocoder, tmp_path_factory):
    """The graph that gives samples, by the command, which is handed the graph of the session instead of a new one."""
    folder = tmp_path_factory.mktemp("exported") / "wav"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_graph, "convert_model", lambda *_, **__: onnx.load(onnx_folder / "model.onnx"))
        line = ("export", "--ckpt", moved_run, folder, "--format", "onnx", "--steps", 4, "--vocoder", vocoder)
        code, out, err = call(main, *line)
    assert code == 0, err
    assert "an ONNX graph from x, x_length, noise_scale, length_scale to audio_output, 4 evaluations" in out
    return folder


def session(path):
    return onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])


def inputs(ids, *, noise_scale=0.667, length_scale=1.0, **more):
    scales = {"noise_scale": noise_scale, "length_scale": length_scale}
    scales = {name: np.array([value], np.float32) for name, value in scales.items()}
    return {"x": np.array([ids], np.int64), "x_length": np.array([len(ids)], np.int64), **scales, **more}


@pytest.mark.parametrize("speed", [1.0, 0.8, 1.5])
def test_sentences_are_tensorflows(tensorflow_synthesizer, onnx_folder, speed):
    """TensorFlow pads them to its shape."""
    (shape,), graph = tensorflow_synthesizer.voice.shapes, session(onnx_folder / "model.onnx")
    random = np.random.default_rng(int(10 * speed))
    noise = random.standard_normal((1, shape.frames, 80)).astype(np.float32)
    for length in (2, shape.frames // 12):
        tokens = np.zeros([1, shape.tokens], np.int32)
        tokens[0, :length] = random.integers(2, 30, length)
        mel, frames, _ = tensorflow_synthesizer.model.generate(
            tf.constant(tokens), tf.constant([length]), noise=noise, temperature=0.667,
            schedule=tf.constant(OPTIONS.schedule), speed=speed, conditioning=NOBODY,
        )  # fmt: skip
        asked = inputs(tokens[0, :length], noise=noise, length_scale=1.0 / speed)
        expected = mel[0, : int(frames[0])].numpy().T
        np.testing.assert_allclose(graph.run(None, asked)[0], expected[np.newaxis], atol=1e-3)
        assert expected.std() > 0.1


def test_noise_and_pads_act_as_in_matcha_models(onnx_folder):
    graph = session(onnx_folder / "model.onnx")
    noise = np.random.default_rng(2).standard_normal((1, 400, 80)).astype(np.float32)
    ids = [5, 9, 20, 14, 8]
    mel = graph.run(None, inputs(ids, noise=noise))[0]
    assert np.abs(graph.run(None, inputs(ids, noise=noise, noise_scale=0.0))[0] - mel).max() > 0.01
    # As sherpa-onnx gives them, and as a batch is padded.
    padded = [0, *(i for symbol in ids for i in (symbol, 0)), 0]
    np.testing.assert_array_equal(graph.run(None, inputs(padded, noise=noise))[0], mel)
    asked = inputs([*ids, 7, 7], noise=noise) | {"x_length": np.array([len(ids)])}
    np.testing.assert_array_equal(graph.run(None, asked)[0], mel)


def test_schedule_and_noise_may_be_left_out(onnx_folder, with_vocoder):
    for folder in (onnx_folder, with_vocoder):
        graph = session(folder / "model.onnx")
        assert [entry.name for entry in graph.get_inputs()] == ["x", "x_length", "noise_scale", "length_scale"]
        assert {entry.name for entry in graph.get_overridable_initializers()} == {"schedule", "noise", "wanted_frames"}
        ids, noise = [5, 9, 20, 14, 8], np.random.default_rng(2).standard_normal((1, 400, 80)).astype(np.float32)
        without = graph.run(None, inputs(ids, noise=noise))[0]
        schedules = [OPTIONS.replaced(**change).schedule for change in ({}, {"nfe": 20}, {"solver": "midpoint"})]
        mels = [graph.run(None, inputs(ids, noise=noise, schedule=schedule))[0] for schedule in schedules]
        np.testing.assert_array_equal(mels[0], without)
        assert len({mel.tobytes() for mel in mels}) == 3
        # Drawn inside it is other noise, as long as the speech.
        drawn = graph.run(None, inputs(ids))[0]
        assert drawn.shape == without.shape
        assert np.abs(drawn - without).max() > 1e-3


def test_the_speech_ends_with_the_noise(onnx_folder):
    graph, ids = session(onnx_folder / "model.onnx"), [5, 9, 20, 14, 8]
    noise = np.random.default_rng(2).standard_normal((1, 7, 80)).astype(np.float32)
    assert graph.run(None, inputs(ids, length_scale=9.0, noise=noise))[0].shape == (1, 80, 7)


def test_the_graph_with_a_vocoder_gives_its_samples(onnx_folder, with_vocoder, vocoder):
    graph = session(with_vocoder / "model.onnx")
    assert [entry.name for entry in graph.get_outputs()] == ["audio_output"]
    ids = [5, 9, 20, 14, 8, 2, 11]
    noise = np.zeros((1, 400, 80), np.float32)
    mel = session(onnx_folder / "model.onnx").run(None, inputs(ids, noise=noise))[0]
    expected = session(vocoder).run(None, {"mel": mel.transpose(0, 2, 1)})[0].reshape(1, -1)
    samples = graph.run(None, inputs(ids, noise_scale=0.0))[0]
    assert samples.shape == (1, mel.shape[2] * HOP)
    np.testing.assert_allclose(samples, expected, atol=1e-5)


def test_the_noise_is_drawn_inside_and_keyed_by_onnxruntimes_seed(with_vocoder):
    def speak(seed):
        onnxruntime.set_seed(seed)
        return session(with_vocoder / "model.onnx").run(None, inputs([5, 9, 20]))[0]

    np.testing.assert_array_equal(speak(3), speak(3))
    assert np.abs(speak(3) - speak(4)).max() > 1e-3


@pytest.mark.parametrize("joined", [False, True])
def test_sherpa_onnx_speaks_without_tensorflow(onnx_folder, with_vocoder, joined, tmp_path):
    """In a process of its own: sherpa-onnx brings an onnxruntime of its own."""
    folder, vocoder = with_vocoder, ""
    if not joined:
        folder, vocoder = onnx_folder, hifigan(tmp_path / "vocoder.onnx", metadata=SHERPA)
    command = [sys.executable, "-P", "-c", STRANGER, folder, vocoder]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["22050", "1"]
    table = [line.rsplit(" ", 1) for line in (folder / "tokens.txt").read_text().splitlines()]
    ids = [int(dict(table)[letter]) for letter in "hello there"]
    expected = session(with_vocoder / "model.onnx").run(None, inputs(ids, noise_scale=0.0))[0][0]
    np.testing.assert_allclose(np.load(tmp_path / "spoken.npy"), expected, atol=1e-3)


def test_the_code_of_the_page_speaks(with_vocoder, tmp_path):
    page = (Path(__file__).parents[4] / "docs" / "export.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    assert len(programs) == 2
    (tmp_path / "voice").symlink_to(with_vocoder)
    for program, shown in zip(programs, ("len(samples)", "len(audio.samples)"), strict=True):
        command = [sys.executable, "-P", "-c", f"{program}\nprint({shown})"]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert int(result.stdout) % HOP == 0
    assert (tmp_path / "out.wav").stat().st_size > 1000


def test_metadata_are_those_of_matcha_models(with_vocoder):
    declared = session(with_vocoder / "model.onnx").get_modelmeta().custom_metadata_map
    expected = {
        "model_type": "matcha-tts", "sample_rate": "22050", "n_speakers": "1", "language": "English", "voice": "en-us",
        "pad_id": "0", "use_eos_bos": "0", "jieba": "0", "has_espeak": "0", "version": "1", "mel_profile": "hifigan",
    }  # fmt: skip
    assert expected.items() <= declared.items()
    names = sorted(path.name for path in with_vocoder.iterdir())
    assert names == ["config.yaml", "model.onnx", "profile.json", "tokenizer.json", "tokens.txt", "voice.json"]


def test_tokens_of_each_kind_of_tokenizer():
    lines = tokens_file(build_tokenizer("characters", add_blank=True)).splitlines()
    assert lines[:2] == ["  2", "! 3"]
    assert "a 14" in lines
    assert not any(line.startswith("<") for line in lines)
    assert tokens_file(build_tokenizer("phonemes", add_blank=False)).splitlines()[-2:] == ["^ 2", "$ 2"]
    pieces = learn_tokenizer("bpe", {"en": ["the cat and the dog and the cow"] * 3}, add_blank=False, vocabulary=60)
    table = dict(line.rsplit(" ", 1) for line in tokens_file(pieces).splitlines())
    assert int(table["\u2581the"]) == pieces.symbols.index(" the")
    assert len(set(table)) == len(pieces.symbols) - 2


def refused(run, folder, **options):
    with pytest.raises(LockstepError) as caught:
        export(run, folder / "out", OPTIONS, formats=[ONNX], card=CardOptions(), onnx=OnnxOptions(**options))
    assert not list(folder.glob("*out*"))
    return str(caught.value)


def vocos_of(path):
    metadata = VOCOS_METADATA | {"sample_rate": 22_050}
    return vocos(path, np.ones((513, 50), np.complex64), channels=80, metadata=metadata)


def of_a_later_opset(path):
    model = onnx.load(hifigan(path))
    model.opset_import[0].version = 18
    model.graph.node.append(onnx.helper.make_node("Mish", ["up"], ["unused"]))
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "cannot be read (No such file or directory)"),
        (lambda path: hifigan(path, metadata={"mel_profile": "vocos24"}), "for mel profile vocos24, expected hifigan"),
        (vocos_of, "a spectrum (mag, x, y), which cannot be joined, expected a vocoder whose only output is samples"),
        (of_a_later_opset, "opset 18, which does not convert to 17 ("),
    ],
)
def test_unusable_vocoders_are_refused_before_any_work(finished_run, tmp_path, monkeypatch, make, message):
    """What is no vocoder of the profile at all: test_onnx_vocoder.py and test_onnx_file.py."""
    monkeypatch.setattr(tensorflow_synthesizer_module, "load_model", lambda _: pytest.fail("the model was loaded"))
    make(tmp_path / "v.onnx")
    assert message in refused(finished_run[0], tmp_path, vocoder=tmp_path / "v.onnx")


def test_a_graph_too_large_for_one_file_is_refused(finished_run, onnx_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_graph, "convert_model", lambda *_, **__: onnx.load(onnx_folder / "model.onnx"))
    monkeypatch.setattr(onnx_model, "_MOST_BYTES", 1000)
    assert "bytes, expected at most 1,000" in refused(finished_run[0], tmp_path)


def test_options_that_do_not_fit_are_refused(finished_run, call, tmp_path, monkeypatch):
    code, _, err = call(main, "export", "--ckpt", finished_run[0], tmp_path / "out", "--language", "en")
    assert code == 2
    assert "--language: together with --format saved-model, expected --format onnx" in err
    assert "does not speak 'fa'" in refused(finished_run[0], tmp_path, language="fa")
    assert "takes no recording" in refused(finished_run[0], tmp_path, speaker_wav=(tmp_path / "voice.wav",))
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    assert "tf2onnx not installed; pip install 'lockstep-tts[onnx]'" in refused(finished_run[0], tmp_path)
