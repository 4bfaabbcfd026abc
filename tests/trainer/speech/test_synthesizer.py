"""The graph that speaks, and what its folder says of it."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_graphs import hifigan

from xtts.shared.errors import LockstepError
from xtts.trainer import load_voice
from xtts.trainer.export.exported_voice import exported_voice
from xtts.trainer.speech.reference_recordings import read_recordings
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.voice_source import open_source
from xtts.trainer.stored.stored_model import open_model
from xtts.trainer.synth_cli import main

OPTIONS = SynthesisOptions(nfe=2)


def test_speech_depends_on_noise_key_and_options_alone(onnx_folder):
    speaker = load_synthesizer(open_source(onnx_folder), OPTIONS)

    def mel(noise_key=0, **options):
        speaker.options = OPTIONS.replaced(**options)
        return speaker.speak([5, 9, 20], speaker=0, noise_key=noise_key)[0]

    first = mel()
    others = [mel(noise_key=1), mel(seed=1), mel(nfe=4), mel(temperature=0.3), mel(speed=3.0)]
    assert len({m.tobytes() for m in (first, *others)}) == 6
    np.testing.assert_array_equal(mel(), first)
    assert mel(speed=3.0).shape[0] < first.shape[0]


def test_speech_beyond_the_longest_shape_is_cut_there_and_said(onnx_folder):
    speaker = load_synthesizer(open_source(onnx_folder), OPTIONS.replaced(speed=0.25))
    longest = speaker.voice.shapes[-1].frames
    mel, durations = speaker.speak([5] * 60, speaker=0, noise_key=0)
    assert len(mel) == longest < durations.sum()


@pytest.mark.long
def test_a_float16_folder_of_both_speaks(call, moved_run, onnx_folder, safetensors_folder, synthesizer, tmp_path):
    (tmp_path / "about.md").write_text("Spoken by ours truly.\n")
    kinds = ("--format", "safetensors", "--format", "onnx", "--float16", "--nfe", 22, "--about", tmp_path / "about.md")
    said, folder = call(main, "export", "--ckpt", moved_run, tmp_path / "voice", *kinds).succeeded(), tmp_path / "voice"
    assert "as an ONNX graph" in said
    assert "as safetensors; its card" in said
    card = (folder / "README.md").read_text()
    assert "\n\nSpoken by ours truly.\n\n## Use" in card
    assert "`model.safetensors`: averaged weights, float16\n- `model.onnx`, `tokens.txt`: the same model" in card
    for whole, name, share in ((onnx_folder, "model.onnx", 0.9), (safetensors_folder, "model.safetensors", 0.7)):
        assert (folder / name).stat().st_size < share * (whole / name).stat().st_size
    weights, whole = (open_model(path).averages() for path in (folder, safetensors_folder))
    halved = {path: values.astype(np.float16 if values.size >= 64 else np.float32) for path, values in whole.items()}
    assert all(np.array_equal(weights[path], halved[path]) for path in whole)
    pair = load_synthesizer(open_source(folder), OPTIONS), synthesizer
    rounded, expected = (each.speak([5, 9, 20, 14], speaker=0, noise_key=0)[0] for each in pair)
    assert 1e-6 < np.abs(rounded - expected).max() < 0.05


def test_a_folder_without_a_graph_does_not_speak(finished_run, safetensors_folder):
    with pytest.raises(LockstepError, match=r"weights without a model\.onnx, .*; xtts-synth export --ckpt .* --format"):
        load_synthesizer(open_source(safetensors_folder), OPTIONS)
    with pytest.raises(LockstepError, match=r"no exported voice, .*; a run has its voice in RUN/voice; xtts-synth"):
        load_voice(finished_run[0])


def test_a_checkpoint_is_exported_once_before_it_speaks(moved_run, onnx_folder, tmp_path):
    run, lines = Path(shutil.copytree(moved_run, tmp_path / "run")), []
    first, again = (exported_voice(run, lines.append) for _ in range(2))
    assert first == again
    assert (first.folder, first.name) == (run / "checkpoint-voice", "run")
    (line,) = lines
    assert re.fullmatch(r"exporting .*run/checkpoints/step-12 to .*run/checkpoint-voice: may take a minute", line)
    spoken = [load_synthesizer(open_source(folder), OPTIONS).speak([5, 9], speaker=0, noise_key=0)[0]
              for folder in (first.folder, onnx_folder)]
    np.testing.assert_array_equal(*spoken)
    checkpoint = exported_voice(run / "checkpoints" / "step-8", lines.append)
    assert checkpoint.folder == first.folder
    assert len(lines) == 2
    (run / "voice").rename(run / "earlier") if (run / "voice").exists() else None
    first.folder.rename(run / "voice")
    assert exported_voice(run / "checkpoints" / "step-8", lines.append).folder == run / "voice"
    assert len(lines) == 2


def test_a_graph_may_have_its_language_and_its_voice_inside(onnx_folder, tmp_path):
    shutil.copytree(onnx_folder, tmp_path / "voice")
    described, table = (tmp_path / "voice" / name for name in ("voice.json", "tokenizer.json"))
    table.write_text(json.dumps(json.loads(table.read_text()) | {"languages": ["en", "fa"]}))
    fields = json.loads(described.read_text())
    assert open_source(tmp_path / "voice").languages == ["en", "fa"]
    described.write_text(json.dumps(fields | {"language": "fa"}))
    source = open_source(tmp_path / "voice")
    assert source.languages == ["fa"]
    assert {source.language(asked) for asked in (None, "fa-IR", "AUTO", "per")} == {"fa"}
    with pytest.raises(LockstepError, match="does not speak 'en', expected fa"):
        source.language("en")
    described.write_text(json.dumps(fields | {"language": ["de"]}))
    with pytest.raises(LockstepError, match=r"voice\.json: language \['de'\], expected en or fa"):
        open_source(tmp_path / "voice")
    of_a_recording = replace(source, voice_from="graph")
    assert read_recordings([], of_a_recording) == []
    with pytest.raises(LockstepError, match="has its voice inside"):
        read_recordings([tmp_path / "a.wav"], of_a_recording)


def test_speaker_and_language_follow_each_other(several):
    _, source = several
    assert (source.language(None), source.language(None, "cy"), source.language("en", "cy")) == ("en", "fa", "en")
    assert [source.speaker_row(None, code) for code in ("en", "fa", "de")] == [0, 2, 0]
    assert source.speaker_row("bo", "fa") == source.speaker_row("Bo", "fa") == 1
    assert {source.language("Persian"), source.language(None, "CY"), source.language("auto", "Cy")} == {"fa"}


def test_a_graph_has_no_weights(onnx_folder, call, run_train, tmp_path):
    for arguments in (("evaluate", "--ckpt", onnx_folder), ("export", "--ckpt", onnx_folder, tmp_path / "out")):
        code, _, err = call(main, *arguments, *(("--cache", tmp_path) if arguments[0] == "evaluate" else ()))
        assert code == 2
        assert len(err.splitlines()) == 1
    assert f"{onnx_folder}: an ONNX graph without weights, which only speaks, expected a run folder" in err
    done = run_train(tmp_path / "run", more=["--init-from", onnx_folder])
    assert "an ONNX graph without weights, which only speaks" in done.refused()
    assert "tracing" not in done.out, "refused before a minute's work"


def drop_optional(model):
    kept = [part for part in model.graph.initializer if part.name != "schedule"]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def not_finite(model):
    for node in model.graph.node:
        node.output[:] = ["before" if name == "mel" else name for name in node.output]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(np.inf), "infinity"))
    model.graph.node.append(onnx.helper.make_node("Mul", ["before", "infinity"], ["mel"]))


@pytest.mark.parametrize(("change", "message"), [
    (drop_optional, "a graph of .*, expected one that xtts-synth export --format onnx has written"),
    (not_finite, "expected finite float32"), (None, "gives audio"),
])
def test_other_graphs_are_refused(onnx_folder, tmp_path, change, message):
    folder = shutil.copytree(onnx_folder, tmp_path / "voice")
    model = onnx.load(hifigan(tmp_path / "v.onnx") if change is None else folder / "model.onnx")
    if change:
        change(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(LockstepError, match=message):
        load_synthesizer(open_source(folder), OPTIONS)
