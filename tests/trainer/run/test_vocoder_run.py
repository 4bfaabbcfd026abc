"""`xtts-train --config vocoder` on crops of the tiny corpus: the trainer's second model."""

import json

import numpy as np
import pytest
from held_runs import SMALL_VOCODER
from made_once import made_once

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.errors import LockstepError
from xtts.trainer import synth_cli
from xtts.trainer.run.run_plan import make_plan
from xtts.trainer.speech.vocoder import make_vocoder
from xtts.trainer.stored.checkpoint import load_arrays

STEPS = [*SMALL_VOCODER, "training.steps=6", "training.validate_every=3", "training.checkpoint_every=3",
         "training.samples_every=6", "training.sample_sentences=2", "training.samples_heard=1"]


@pytest.fixture(scope="session")
def vocoder_run(run_train, crop_cache):
    """(folder, screen) of an uninterrupted run."""
    with made_once("vocoder-run") as (place, empty):
        if empty:
            screen = run_train(place / "whole", *STEPS, cache=crop_cache, more=["--config", "vocoder"]).succeeded()
            (place / "screen.txt").write_text(screen)
    return place / "whole", (place / "screen.txt").read_text()


@pytest.mark.long
def test_generator_and_discriminators_move_and_are_validated(vocoder_run, read_steps):
    folder, screen = vocoder_run
    first, last = (load_arrays(folder / "checkpoints" / f"step-{step}") for step in (3, 6))
    weights = [name for name in first if name.startswith("weights/")]
    assert {"/discriminator_" in name for name in weights} == {True, False}
    assert all((first[name] != last[name]).any() for name in weights)
    assert {"spectrum", "adversary", "discriminators", "discriminator_gradient_norm"} < read_steps(folder)[0].keys()
    (_, validation) = read_steps(folder, "validation")
    assert validation["loss"] == pytest.approx(
        3 * validation["spectrum"] + 3 * validation["mel"] + validation["pitch"], rel=1e-5
    )
    (samples,) = read_steps(folder, "evaluation")
    assert samples["mel_error"] > 0
    assert "crops of 32 frames" in screen
    assert f"use it: xtts-synth --vocoder onnx:{folder}/voice/vocoder.onnx" in " ".join(screen.split())


@pytest.fixture(scope="session")
def vocoder_file(vocoder_run, call, tmp_path_factory):
    """Its export."""
    out = tmp_path_factory.mktemp("exported") / "out"
    call(synth_cli.main, "export", "--ckpt", vocoder_run[0], out).succeeded()
    assert {file.name for file in out.iterdir()} == {"vocoder.onnx", "facts.json"}
    return out / "vocoder.onnx"


@pytest.mark.long
def test_its_export_is_a_vocoder(vocoder_file):
    assert json.loads(vocoder_file.with_name("facts.json").read_text())["sources"][0]["name"] == "own corpus"
    vocode = make_vocoder(f"onnx:{vocoder_file}", mel_profile("hifigan"), print)
    samples = vocode(np.random.default_rng(0).normal(-4.0, 1.0, [40, 80]).astype(np.float32))
    assert (samples.shape, bool(np.isfinite(samples).all())) == ((40 * 256,), True)


@pytest.mark.long
def test_a_run_starts_from_an_exported_vocoder(vocoder_run, call, tmp_path, run_train, crop_cache, read_steps):
    weights = tmp_path / "weights"
    call(synth_cli.main, "export", "--ckpt", vocoder_run[0], "--format", "safetensors", weights).succeeded()
    for out, start in (("one", weights), ("other", vocoder_run[0])):
        more = ["--config", "vocoder", "--init-from", start]
        run_train(tmp_path / out, *SMALL_VOCODER, "training.steps=2", cache=crop_cache, more=more).succeeded()
    assert read_steps(tmp_path / "one") == read_steps(tmp_path / "other")
    assert read_steps(tmp_path / "one")[0]["spectrum"] != read_steps(vocoder_run[0])[0]["spectrum"]


@pytest.mark.long
def test_an_exported_voice_gets_the_vocoder(finished_run, vocoder_run, vocoder_file, call, tmp_path):
    first = ["--ckpt", finished_run[0], "--format", "safetensors", "--vocoder", vocoder_file, tmp_path / "voice"]
    assert call(synth_cli.main, "export", *first)[0] == 0
    assert (tmp_path / "voice" / "vocoder.onnx").read_bytes() == vocoder_file.read_bytes()
    assert "| vocoder | not known | not known |" in (tmp_path / "voice" / "README.md").read_text()
    wrong = ["--ckpt", vocoder_run[0], "--vocoder", vocoder_file, tmp_path / "other"]
    assert "a vocoder itself, expected a voice" in call(synth_cli.main, "export", *wrong).refused()
    wrong = ["--ckpt", finished_run[0], "--vocoder", tmp_path / "none.onnx", tmp_path / "other"]
    assert "no such file" in call(synth_cli.main, "export", *wrong).refused()


def test_each_kind_wants_its_own_cache(crop_cache, tiny_cache, tmp_path):
    def prepare(config, cache):
        make_plan(config, [], {}, cache=cache, out=tmp_path / "run", resume=None, init_from=None)

    with pytest.raises(LockstepError, match="crops, which train a vocoder; train with --config vocoder"):
        prepare(["tiny"], crop_cache)
    with pytest.raises(LockstepError, match="whole clips, expected crops"):
        prepare(["vocoder"], tiny_cache)
    (tmp_path / "half.yaml").write_text("training: {mixed_precision: bfloat16}")
    with pytest.raises(LockstepError, match="bfloat16, in which no vocoder has been tried, expected float32"):
        prepare(["vocoder", str(tmp_path / "half.yaml")], crop_cache)
    (tmp_path / "other.yaml").write_text("training: {kind: vocodr}")
    with pytest.raises(LockstepError, match=r"training.kind: 'vocodr', expected acoustic or vocoder"):
        prepare([str(tmp_path / "other.yaml")], tiny_cache)
