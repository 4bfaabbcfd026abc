"""`xtts-synth export --format safetensors`: the folder speaks and trains as the run does, and its card is true."""

import json
import shutil

import pytest
import yaml
from cache_files import tokenizer_path
from safetensors.numpy import load_file, save_file

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.errors import LockstepError
from xtts.trainer.export.onnx_graph import load_model
from xtts.trainer.stored.checkpoint import load_arrays
from xtts.trainer.stored.stored_model import open_model
from xtts.trainer.synth_cli import main


def card_of(folder):
    """(front matter, the rest) of the card."""
    _, front, text = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), text


def test_the_folder_has_what_model_hubs_expect(safetensors_folder, one_shape_cache):
    folder = safetensors_folder
    assert {path.name for path in folder.iterdir()} == {
        "README.md", "model.safetensors", "config.yaml", "tokenizer.json", "voice.json", "profile.json", "facts.json",
        "vocoder.onnx",
    }
    tokenizer, profile = (json.loads((folder / f"{name}.json").read_text()) for name in ("tokenizer", "profile"))
    assert tokenizer == json.loads(tokenizer_path(one_shape_cache).read_text())
    assert (profile["name"], profile["sample_rate"]) == ("hifigan", 22_050)
    assert "step-12 as safetensors" in folder.with_name("screen.txt").read_text()
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".")]


def test_the_card_says_what_is_known_and_no_more(safetensors_folder, moved_run, one_shape_cache):
    front, text = card_of(safetensors_folder)
    assert front["library_name"] == "lockstep-tts"
    assert front["language"] == ["en"]
    assert "license" not in front
    assert "## Licence\n\nNot stated.\n" in text
    assert "## Figures\n\nNot computed.\n" in text
    spec, facts = load_spec(one_shape_cache), json.loads((safetensors_folder / "facts.json").read_text())
    assert facts["corpus"]["clips"] == spec.statistics.clips == 24
    assert facts["corpus"]["hours"] == pytest.approx(spec.statistics.seconds / 3600)
    assert facts["model"]["steps"] == 12
    arrays = load_arrays(moved_run / "checkpoints" / "step-12")
    parameters = sum(values.size for name, values in arrays.items() if name.startswith("averages/"))
    assert facts["model"]["parameters"] == parameters
    assert f"| parameters | {parameters:,} |" in text
    assert f"| clips | {spec.statistics.clips} |" in text
    (own,), vocoder = facts["sources"], facts["vocoder_sources"]
    hours = facts["corpus"]["hours"]
    assert own == {
        "name": "own corpus", "hours": hours, "license": "", "note": "", "synthetic": None, "through": [],
    }
    assert "| model | own corpus | 0.01 | not stated | not stated |  |  |" in text
    assert [(each["hours"], each["license"], each["synthetic"]) for each in vocoder] == [
        (1.2, "cc0-1.0", False), (1.5, "cc0-1.0", False), (1.0, "cc0-1.0", False), (5.4, "cc-by-4.0", False),
        (3.8, "cc-by-4.0", False), (3.1, "cc0-1.0", False), (1.7, "mit-festival", False),
    ]
    assert "Synthetic hours, as far as known: 0 in the model, 0 in the vocoder.\n" in text


def test_no_path_of_this_machine_is_in_the_folder(safetensors_folder, moved_run, one_shape_cache):
    for path in safetensors_folder.iterdir():
        data = path.read_bytes()
        for place in (moved_run.parent, one_shape_cache.parent, safetensors_folder.parent):
            assert str(place).encode() not in data, path
        assert b"/home/" not in data
        assert b"/tmp/" not in data


def test_a_missing_weight_is_named(safetensors_folder, tmp_path):
    folder = shutil.copytree(safetensors_folder, tmp_path / "copy")
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("duration_predictor/output_projection/kernel"))
    save_file({key: value for key, value in weights.items() if key != name}, folder / "model.safetensors")
    with pytest.raises(LockstepError, match=f"weight {name} is missing"):
        load_model(open_model(folder))
    save_file({**weights, name: weights[name][:-1]}, folder / "model.safetensors")
    with pytest.raises(LockstepError, match=rf"weight {name} has the shape \(15, 1\), expected \(16, 1\)"):
        load_model(open_model(folder))


def report(checkpoint):
    means = {"mcd_db": 5.5, "relative_mcd": 0.25, "duration_error": 0.125, "sentences": []}
    return {
        "checkpoint": str(checkpoint), "cache": "/home/someone/features", "split": "validation", "options": {},
        "spoken": 3, "recordings": 3, "systems": {"synthesised": means},
    }


def test_figures_and_licence_are_taken_where_they_are_given(call, finished_run, tmp_path):
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps(report(finished_run[0] / "checkpoints" / "step-12")))
    given = ["--format", "safetensors", "--license", "cc-by-4.0", "--evaluation", figures]
    call(main, "export", "--ckpt", finished_run[0], tmp_path / "out", *given).succeeded()
    front, text = card_of(tmp_path / "out")
    assert front["license"] == "cc-by-4.0"
    assert "## Licence\n\ncc-by-4.0\n" in text
    assert "| not stated | cc-by-4.0 | asks for attribution |  |" in text
    assert "Means over 3 held-out sentences" in text
    assert "| | synthesised |\n|---|---:|\n| relative MCD | 0.250 |\n| duration error | 12.5% |\n" in text
    assert "someone" not in text + (tmp_path / "out" / "facts.json").read_text()


def test_what_does_not_belong_to_the_checkpoint_is_refused(call, safetensors_folder, finished_run, tmp_path):
    def refused(*options, ckpt=finished_run[0]):
        code, _, err = call(main, "export", "--ckpt", ckpt, tmp_path / "out", *options)
        assert code == 2
        assert not (tmp_path / "out").exists()
        return err

    folder = ["--format", "safetensors"]
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps(report(finished_run[0] / "checkpoints" / "step-8")))
    assert "step-8, expected those of" in refused(*folder, "--evaluation", figures)
    for text in ("[]", "{", '{"checkpoint": 3}', "[" * 100_000):
        figures.write_text(text)
        assert "holds no figures, expected a file of xtts-synth evaluate --json" in refused(
            *folder, "--evaluation", figures
        )
    assert "cannot be read" in refused(*folder, "--evaluation", tmp_path / "none.json")
    assert "--license: together with --format onnx, expected --format safetensors" in refused("--license", "mit")
    assert "--nfe: together with --format safetensors, expected --format onnx or piper" in refused(*folder, "--nfe", 10)
    assert "is exported already; copy the folder" in refused(*folder, ckpt=safetensors_folder)
