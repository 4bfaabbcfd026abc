# ruff: noqa: RUF001 - IPA letters look like others
"""A Piper voice speaks as Lockstep does: in onnxruntime, in sherpa-onnx and in piper-tts."""

import json
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import pytest
import soundfile
from onnx_graphs import hifigan
from tables import cases

from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import PHONEMES, Tokenizer, build_tokenizer
from xtts.trainer import synth_cli as cli
from xtts.trainer.export import piper_voice
from xtts.trainer.export.export_formats import ExportOptions, ExportRequest
from xtts.trainer.export.piper_graph import join_graphs, token_graph
from xtts.trainer.export.piper_voice import piper_phonemes, piper_speakers, read_vocoder, save_piper
from xtts.trainer.run.finish import export
from xtts.trainer.speech.long_form import LoadedVoice
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Synthesizer
from xtts.trainer.speech.vocoder import make_vocoder
from xtts.trainer.speech.voice_source import open_source

CASES = cases(__file__)
BASE = Path(__file__).parents[3] / "voices" / "base"
NFE = SynthesisOptions().nfe
SENTENCE, IPA = "Ich möchte nicht.", "ɪç mˈœçtə nˈɪçt."

SHERPA = """
import sys
import numpy as np
import sherpa_onnx

folder, phonemes = sys.argv[1:]
vits = sherpa_onnx.OfflineTtsVitsModelConfig(
    model=f"{folder}/kerstin.onnx", tokens=f"{folder}/tokens.txt", noise_scale=0.0)
tts = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=sherpa_onnx.OfflineTtsModelConfig(vits=vits)))
asked = sherpa_onnx.GenerationConfig()
asked.phoneme_codepoints = [[ord(phoneme) for phoneme in phonemes]]
asked.silence_scale = 1.0
spoken = tts.generate("", asked)
print(spoken.sample_rate, tts.num_speakers)
np.save("spoken.npy", np.array(spoken.samples, np.float32))
"""


def kerstin():
    """(the German speaker of `voices/base` as a voice of her own, her graph)."""
    source, graph = open_source(BASE), onnx.load(BASE / "model.onnx")
    for entry in [entry for entry in graph.graph.input if entry.name in ("sid", "language")]:
        graph.graph.input.remove(entry)
        graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), entry.name))
    alone = source.voice.model_copy(update={"speakers": [], "speaker_languages": {}})
    return replace(source, voice=alone), graph.SerializeToString()


def saved(folder, name, *, vocoder, **options):
    """A Piper voice of her graph, which is not exported again."""
    source, graph = kerstin()
    options = {"synthesis": SynthesisOptions(), "options": ExportOptions(language="de", **options)}
    with patch.object(piper_voice, "make_graph", lambda *_, **__: (graph, "")):
        return save_piper(None, source, folder, name, vocoder=vocoder, **options)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("piper")
    said = saved(folder, "kerstin", vocoder=BASE / "vocoder.onnx")
    assert said == f"a Piper voice, kerstin.onnx and kerstin.onnx.json: German, {NFE} evaluations"
    return folder


def session_of(graph):
    return onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="session")
def session(folder):
    return session_of((folder / "kerstin.onnx").read_bytes())


def spoken_ids(ids, phonemes):
    """Ids as Piper makes them: of code points, with a pad after each; phonemes without ids are dropped."""
    inner = [i for c in unicodedata.normalize("NFD", phonemes) if c in ids for i in (ids[c], ids["_"])]
    return [ids["^"], ids["_"], *inner, ids["$"]]


def given(ids, *, noise_scale=0.0, length_scale=1.0, **more):
    scales = np.array([noise_scale, length_scale, 0.8], np.float32)
    return {"input": np.array([ids], np.int64), "input_lengths": np.array([len(ids)]), "scales": scales, **more}


@pytest.fixture(scope="session")
def ids(folder):
    config = json.loads((folder / "kerstin.onnx.json").read_text(encoding="utf-8"))
    return {phoneme: number for phoneme, (number,) in config["phoneme_id_map"].items()}


def test_it_speaks_as_the_voice_and_its_vocoder_do(session, ids):
    source, graph = kerstin()
    synthesizer = Synthesizer(source, SynthesisOptions(temperature=0), graph=graph, location="voice")
    table = {symbol: i for i, symbol in enumerate(source.voice.tokenizer.symbols)}
    tokens = [1, *(i for symbol in ("<start>", *IPA, "<end>") for i in (table[symbol], 1))]
    mel, _ = synthesizer.speak(tokens, speaker=0, noise_key=0)
    vocoder = make_vocoder(f"onnx:{BASE / 'vocoder.onnx'}", source.voice.mel_profile, pytest.fail, clip=False)
    speaker = LoadedVoice(synthesizer, vocoder, speaker=0, language="de")
    speaker.measure()
    expected = speaker.gain * vocoder(mel)
    expected /= max(np.abs(expected).max(), 1)
    assert speaker.gain > 1.1
    (output,) = session.run(None, given(spoken_ids(ids, IPA)))
    assert output.shape == (1, 1, 1, len(mel) * 256)
    np.testing.assert_allclose(output[0, 0, 0], expected, atol=1e-3)
    assert np.abs(expected).max() > 0.1


def test_scales_and_lengths_act_as_in_piper(session, ids):
    asked = spoken_ids(ids, IPA)
    (still,) = session.run(None, given(asked))
    np.testing.assert_array_equal(session.run(None, given(asked))[0], still)
    first, second = (session.run(None, given(asked, noise_scale=0.5))[0] for _ in range(2))
    assert first.shape == second.shape == still.shape
    assert np.abs(first - second).max() > 0.01 < np.abs(first - still).max()
    (slow,) = session.run(None, given(asked, length_scale=2.0))
    assert 1.7 < slow.size / still.size < 2.3
    padded = given([*asked, 20, 20]) | {"input_lengths": np.array([len(asked)])}
    np.testing.assert_array_equal(session.run(None, padded)[0], still)


def test_the_graph_is_one_that_old_runtimes_have(folder, session):
    graph = onnx.load(folder / "kerstin.onnx")
    assert next(entry.version for entry in graph.opset_import if not entry.domain) == 17
    assert not {node.op_type for node in graph.graph.node} & {"STFT", "DFT"}
    described = [(entry.name, entry.type, entry.shape[0], len(entry.shape)) for entry in session.get_inputs()]
    assert described == [
        ("input", "tensor(int64)", 1, 2),
        ("input_lengths", "tensor(int64)", 1, 1),
        ("scales", "tensor(float)", 3, 1),
    ]
    assert [entry.name for entry in session.get_outputs()] == ["output"]
    assert graph.producer_name == "lockstep-tts"
    assert session.get_modelmeta().custom_metadata_map == CASES["metadata"]


def test_the_json_has_what_piper_reads(folder, ids):
    assert sorted(path.name for path in folder.iterdir()) == ["kerstin.onnx", "kerstin.onnx.json", "tokens.txt"]
    config = json.loads((folder / "kerstin.onnx.json").read_text(encoding="utf-8"))
    del config["phoneme_id_map"]
    assert config == CASES["config"]
    lines = (folder / "tokens.txt").read_text(encoding="utf-8").splitlines()
    assert dict(line.rsplit(" ", 1) for line in lines) == {phoneme: str(i) for phoneme, i in ids.items()}
    assert all(len(phoneme) == 1 for phoneme in ids), "Piper in C++ refuses others"


@pytest.mark.parametrize(("language", "add_blank", "theirs", "ours"), CASES["phonemes"])
def test_phonemes_of_pipers_espeak_become_those_of_the_voice(language, add_blank, theirs, ours):
    tokenizer = build_tokenizer("phonemes", add_blank=add_blank)
    ids, rules = piper_phonemes(tokenizer, language)
    session = session_of(token_graph(tokenizer, rules).SerializeToString())
    x, length, noise_scale, length_scale = session.run(
        ["x", "x_length", "noise_scale", "length_scale"], given(spoken_ids(ids, theirs), noise_scale=0.3)
    )
    expected = [PHONEMES.index(symbol) for symbol in ("<start>", *ours, "<end>")]
    if add_blank:
        expected = [1, *(i for token in expected for i in (token, 1))]
    assert x.tolist() == [expected]
    assert length.tolist() == [len(expected)]
    assert (noise_scale.tolist(), length_scale.tolist()) == ([np.float32(0.3)], [1.0])


def test_the_row_of_a_speaker_is_an_input(several_graph, several, tmp_path):
    tokenizer = replace(several[1].voice.tokenizer, kind="phonemes")
    model = onnx.load_from_string(several_graph)
    kept = [entry for entry in model.graph.input if entry.name != "language"]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "language"))
    vocoder = onnx.load(hifigan(tmp_path / "vocoder.onnx"))

    def speak(gains, **sid):
        voice = join_graphs(token_graph(tokenizer, {}), model, vocoder, channels_first=True, gains=gains)
        session = session_of(voice.SerializeToString())
        assert [entry.name for entry in session.get_inputs()] == ["input", "input_lengths", "scales", *sid]
        return session.run(None, given([2, 20, 21, 22, 3], **sid))[0]

    heard = [speak({0: 1.0, 1: 1.0, 2: 1.0}, sid=np.array([row])) for row in (0, 1, 2)]
    assert len({sound.tobytes() for sound in heard}) == 3
    assert all(0.01 < np.abs(sound).max() < 0.9 for sound in heard)
    np.testing.assert_allclose(speak({2: 0.5, 0: 0.25}, sid=np.array([0])), 0.5 * heard[2], rtol=1e-5)
    np.testing.assert_array_equal(speak({1: 1.0}), heard[1], "of one speaker, nothing is to choose")
    np.testing.assert_allclose(speak({1: 100.0}), heard[1] / np.abs(heard[1]).max(), rtol=1e-5)


def test_a_language_is_spoken_by_its_own_speakers(several):
    _, source = several
    assert piper_speakers(source, "en") == {"ann": 0, "bo": 1}
    assert piper_speakers(source, "fa") == {"cy": 2}
    assert piper_speakers(source, "de") == {"ann": 0, "bo": 1, "cy": 2}


def test_other_vocoders_become_part_of_it(folder, session, ids, tmp_path):
    """Of an older opset, with the channels first, and with weights of 32 bits, which --float16 halves."""
    path = hifigan(tmp_path / "hifigan.onnx", metadata={"mel_profile": "hifigan"})
    old = onnx.load(path)
    old.opset_import[0].version = 12
    old.graph.node.append(onnx.helper.make_node("Unsqueeze", ["audio"], ["old"], axes=[0]))  # an input since opset 13
    old.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("old", onnx.TensorProto.FLOAT, [1, 1, 1, "S"]))
    onnx.save(old, path)
    saved(tmp_path, "other", vocoder=path, float16=True)
    graph = onnx.load(tmp_path / "other.onnx")
    (kernel,) = (tensor for tensor in graph.graph.initializer if tensor.name.startswith("vocoder/kernel"))
    assert kernel.data_type == onnx.TensorProto.FLOAT16
    asked = given(spoken_ids(ids, IPA))
    (output,) = session_of(graph.SerializeToString()).run(None, asked)
    assert output.shape == session.run(None, asked)[0].shape
    assert 0 < np.abs(output).max() <= 1


def refused(source, tmp_path, *, vocoder=BASE / "vocoder.onnx", **options):
    options = {"synthesis": SynthesisOptions(), "options": ExportOptions(**options)}
    with pytest.raises(LockstepError) as caught:
        save_piper(None, source, tmp_path, "out", vocoder=vocoder, **options)
    return str(caught.value)


def test_voices_that_piper_cannot_read_are_refused(several, tmp_path):
    source = several[1]
    assert "a voice that reads characters, expected one of text.tokenizer=phonemes" in refused(source, tmp_path)
    base = open_source(BASE)
    assert refused(base, tmp_path) == "--language: missing, expected en or de: a Piper voice speaks one language"
    assert "does not speak 'fa'" in refused(base, tmp_path, language="fa")
    tones = Tokenizer(kind="phonemes", add_blank=True, symbols=PHONEMES, merges=(), languages=("vi",))
    vietnamese = replace(base, voice=base.voice.model_copy(update={"tokenizer": tones}))
    assert "Vietnamese, whose tones are missing from Piper's phonemes" in refused(vietnamese, tmp_path)


def test_vocoders_that_cannot_be_inside_are_refused(tmp_path):
    base = open_source(BASE)
    assert "no vocoder for mel profile hifigan; add --vocoder FILE.onnx" in refused(
        base, tmp_path, vocoder=None, language="en"
    )
    assert "No such file" in refused(base, tmp_path, vocoder=tmp_path / "none.onnx", language="en")
    pcm = hifigan(tmp_path / "pcm.onnx", kind="int16", gain=30_000.0)
    with pytest.raises(LockstepError, match="such as int16, expected a vocoder from a float32 mel"):
        read_vocoder(pcm)
    with pytest.raises(LockstepError, match="--format piper: together with onnx, expected alone"):
        export(BASE, ExportRequest(out=tmp_path / "out", formats=["piper", "onnx"]))


def test_sherpa_onnx_speaks_with_it(folder, session, ids, tmp_path):
    """In a process of its own: sherpa-onnx brings an onnxruntime of its own."""
    command = [sys.executable, "-P", "-c", SHERPA, folder, unicodedata.normalize("NFD", IPA)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["22050", "1"]
    expected = session.run(None, given(spoken_ids(ids, IPA)))[0].reshape(-1)
    np.testing.assert_allclose(np.load(tmp_path / "spoken.npy"), expected, atol=1e-3)


@pytest.fixture(scope="session")
def piper(tmp_path_factory):
    """The command of piper-tts, which is GPL and in an environment of its own."""
    environment = tmp_path_factory.mktemp("piper-tts") / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    install = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "piper-tts>=1.3"]
    result = subprocess.run(install, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"piper-tts cannot be installed: {result.stderr[-200:]}")
    return environment / "bin" / "piper"


@pytest.mark.long
@pytest.mark.parametrize(("language", "text"), [("en", "The end of the day, is it not?"), ("de", SENTENCE)])
def test_piper_says_what_lockstep_says(language, text, piper, call, tmp_path):
    """The command exports and speaks; both without noise, so that the samples are alike."""
    pytest.importorskip("espeakng_loader")
    line = ("export", "--ckpt", BASE, "--format", "piper", "--language", language)
    said = call(cli.main, *line, tmp_path / "voice").succeeded()
    assert "as a Piper voice, voice.onnx and voice.onnx.json" in said
    command = [piper, "-m", tmp_path / "voice" / "voice.onnx", "-f", tmp_path / "theirs.wav", "--noise-scale", "0"]
    result = subprocess.run([*command, "--no-normalize", "--", text], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Missing phoneme" not in result.stderr
    call(cli.main, "export", "--ckpt", BASE, tmp_path / "ours").succeeded()  # the shipped graph has rounded weights
    line = ("--ckpt", tmp_path / "ours", "--language", language, "--temperature", "0")
    call(cli.main, *line, "-o", tmp_path / "ours.wav", text).succeeded()
    theirs, ours = (soundfile.read(tmp_path / f"{name}.wav")[0] for name in ("theirs", "ours"))
    assert len(theirs) == len(ours)
    assert np.corrcoef(theirs, ours)[0, 1] > 0.99
