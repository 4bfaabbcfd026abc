"""Whole runs on the shared cache: resume, patience, epochs, bad numbers."""

import io
import itertools
import runpy
import shutil
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from held_runs import train
from rich.console import Console

from xtts.shared.system.folder_lock import exclusive
from xtts.trainer.loop.training_loop import TrainingLoop
from xtts.trainer.stored.checkpoint import list_checkpoints, load_arrays
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.stored.stored_model import open_model
from xtts.trainer.synth_cli import main as synth_main
from xtts.trainer.system.device import Card

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_run_says_what_it_does_and_keeps_the_checkpoints_that_matter(finished_run, read_steps):
    folder, screen = finished_run
    kept = {path.name for path in list_checkpoints(folder / "checkpoints")}
    assert kept - {"step-6"} == {"step-4", "step-8", "step-9", "step-12"}  # 6: best by validation, 9: before the decay
    lines = read_steps(folder)
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert {"loss", "prior", "flow", "duration", "traces"} <= set(lines[0])
    assert all(line["traces"] == 1 for line in lines)
    assert [line["step"] for line in read_steps(folder, "validation")] == [6, 12]
    assert screen.count("compiled the training step of bucket") == 1
    assert "tracing and compiling 1 shape: up to a minute each on two cores, seconds if compiled before\n" in screen
    assert screen.index("compiled the training step") < screen.index("training begins")
    assert "step 12/12" in screen


def test_a_resumed_run_equals_the_uninterrupted_one_to_the_bit(finished_run, run_train, read_steps, tmp_path):
    whole, part = finished_run[0], shutil.copytree(finished_run[0], tmp_path / "part")
    calls = "training.steps_per_call=3"  # in another rhythm, too
    out = run_train(part, calls, more=["--resume", part / "checkpoints" / "step-8"]).succeeded()
    assert "step 8 of 12" in out
    assert read_steps(part) == read_steps(whole)
    assert read_steps(part, "validation") == read_steps(whole, "validation")
    assert [line["step"] for line in read_steps(part, "evaluation")] == [8], "no figure stays of what is done again"
    ours, theirs = (load_arrays(folder / "checkpoints" / "step-12") for folder in (part, whole))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_init_from_takes_only_the_averaged_weights(finished_run, run_train, tmp_path):
    source = finished_run[0] / "checkpoints" / "step-12"
    run_train(tmp_path / "run", "training.steps=4", "training.learning_rate=1e-12", more=["--init-from", source])
    taken, saved = load_arrays(tmp_path / "run" / "checkpoints" / "step-4"), load_arrays(source)
    for name in saved:
        if name.startswith("averages/"):
            np.testing.assert_allclose(taken[name.replace("averages", "weights")], saved[name], atol=1e-6)
    assert int(taken["step"]) == 4
    err = run_train(tmp_path / "other", "model.decoder_width=18", more=["--init-from", source]).refused()
    assert "weights of model.decoder_width = 16, expected 18" in err


@pytest.mark.long
def test_a_run_remembers_its_start_and_its_recordings_when_they_are_gone(safetensors_folder, run_train, call, tmp_path):
    ann, bo = tmp_path / "ann", tmp_path / "bo"
    shutil.copytree(safetensors_folder, ann)
    assert run_train(bo, "training.steps=4", more=["--init-from", ann])[0] == 0
    shutil.rmtree(ann)
    assert run_train(bo, "training.steps=8", more=["--resume", bo])[0] == 0
    assert RunFolder(bo).init_from() == ann
    shutil.rmtree(bo / "voice")
    line = ["export", "--ckpt", bo, "--format", "safetensors", "--license", "cc0-1.0", bo / "voice"]
    assert call(synth_main, *line)[0] == 0
    assert "| started from | ann |\n" in (bo / "voice" / "README.md").read_text()
    own = "| model | own corpus | 0.01 | not stated | "
    rows = f"{own}cc0-1.0 | asks nothing |  |\n{own}not stated |  | ann |\n"
    assert rows in (bo / "voice" / "README.md").read_text()
    for start, license in ((bo, ""), (bo / "voice", "cc0-1.0")):
        passed = [(each.license, each.through) for each in open_model(start).passed_on()]
        assert passed == [(license, ("bo",)), ("", ("ann", "bo"))]


@pytest.mark.parametrize("failing", ["speak", "finite"])
def test_a_hook_and_samples_get_every_step_once_it_is_saved(plan_of_run, tmp_path, monkeypatch, failing):
    """Samples may fail: their speech, which is compiled, or what is reported of it."""
    plan, seen, spoken = plan_of_run(tmp_path / "run", "training.samples_every=8"), [], []

    def newest():
        return "".join(path.name for path in list_checkpoints(plan.folder.checkpoints)[-1:])

    def hook(run, chunk):
        assert newest() == f"step-{run.step}"
        assert [row["step"] for row in chunk.rows()] == [*range(chunk.first_step, run.step + 1)]
        seen.append((chunk.first_step, chunk.last_step, bool(chunk.validation)))

    def fail(*_):
        spoken.append(newest())
        raise OSError("no place to write\nat all")

    parts = {"speak": list, "finite": all} | {failing: fail}
    nothing = SimpleNamespace(empty=False, recordings=list, profile=None, **parts)  # to compile
    monkeypatch.setattr("xtts.trainer.models.acoustic.samples.SpokenSamples", lambda *_: nothing)
    screen = io.StringIO()
    assert train(plan, Console(file=screen, width=200), [hook])
    assert seen == [(1, 4, False), (5, 6, True), (7, 8, False), (9, 9, False), (10, 12, True)]
    assert failing == "speak" or spoken == ["step-8", "step-12"]
    assert "samples at step 8 skipped (no place to write); training continues\n" in screen.getvalue()


def test_a_users_hook_validates_as_ours_does_and_ends_the_run(plan_of_run, tmp_path):
    mine = runpy.run_path(str(EXAMPLES / "validate_hook.py"))["StopWhenWorse"](every=2)
    settings = ["training.validate_every=2", "training.learning_rate=1e-12", "training.patience=null"]
    plan, ours = plan_of_run(tmp_path / "run", *settings), []

    def compare(run, chunk):
        if chunk.validation:
            ours.append(chunk.validation["loss"])
            assert mine.losses[-1] == ours[-1]
        if run.step == 2:
            mine.losses[0] = 0.0  # nothing is better

    screen = io.StringIO()
    assert not train(plan, Console(file=screen, width=200), [mine, compare])
    assert len(ours) == 2
    assert "no better than 0.0000: saved step 5; continue with" in screen.getvalue()


@pytest.mark.long
def test_a_card_without_bfloat16_trains_in_float32_and_the_run_says_so(run_train, tmp_path, monkeypatch):
    monkeypatch.setattr("xtts.trainer.run.trainer.weakest_card", lambda: Card((7, 0), "V100"))
    said = run_train(tmp_path / "run", "training.mixed_precision=bfloat16", "training.steps=4").succeeded()
    assert "bfloat16 needs compute capability 8.0, so training.mixed_precision is" in " ".join(said.split())
    assert "  mixed_precision: float32\n" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")


PATIENT = (
    "training.learning_rate=1e-12", "training.patience=2", "training.validate_every=2",
    "training.keep_checkpoints=1", "training.decay_fraction=0.5", "training.warmup_fraction=0",
)


@pytest.mark.long
def test_a_run_that_no_longer_improves_decays_early(finished_run, run_train, read_steps, tmp_path):
    folder = tmp_path / "run"
    out = run_train(folder, *PATIENT, "training.steps=100", more=["--init-from", finished_run[0]]).succeeded()
    losses = {line["step"]: line["flow"] for line in read_steps(folder, "validation")}
    last = max(losses)
    begun = last // 2
    before = [step for step in losses if step <= begun]
    best = min(before, key=losses.get)
    assert before[-3:] == [best, best + 2, best + 4]
    assert f"no better validation since step {best} (training.patience = 2): the learning rate now decays" in out
    assert f"the run ends at step {last}" in out
    rates = [line["learning_rate"] for line in read_steps(folder)]
    assert len(set(rates[:begun])) == 1
    assert all(one > two for one, two in itertools.pairwise(rates[begun:]))
    assert rates[-1] < 0.2 * rates[0]
    kept = {path.name for path in list_checkpoints(folder / "checkpoints")}
    assert f"step-{last}" in kept
    assert f"  steps: {last}\n" in (folder / "config.yaml").read_text(encoding="utf-8")
    assert RunFolder(folder).init_from() == finished_run[0] / "checkpoints" / "step-12"


@pytest.mark.long
def test_a_run_that_patience_ended_is_complete_and_goes_on_where_more_is_asked_for(run_train, read_steps, tmp_path):
    folder = tmp_path / "run"
    run_train(folder, *PATIENT, "training.steps=24")
    last = read_steps(folder)[-1]["step"]
    assert last < 24
    code, out, _ = run_train(folder, *PATIENT, "training.steps=24", more=["--resume"])
    assert (code, f"is complete: step {last} of {last}" in out) == (0, True)
    code, out, _ = run_train(folder, *PATIENT, "training.steps=25", "training.patience=null", more=["--resume"])
    assert (code, f"continuing from step {last // 2}, before the learning rate" in out) == (0, True)
    assert read_steps(folder)[-1]["step"] == 25


def test_a_finished_run_given_more_steps_goes_on_before_its_decay(finished_run, run_train, read_steps, tmp_path):
    folder = shutil.copytree(finished_run[0], tmp_path / "run")
    out = run_train(folder, "training.steps=14", more=["--resume", folder]).succeeded()
    assert f"{folder}: continuing from step 9, before the learning rate decayed" in out
    assert "steps 10 to 12 are trained again" in out
    lines = read_steps(folder)
    assert [line["step"] for line in lines] == list(range(1, 15))
    assert lines[10]["learning_rate"] == lines[8]["learning_rate"] > 2 * lines[-1]["learning_rate"]


def test_a_folder_in_use_is_an_error(finished_run, run_train):
    folder, _ = finished_run
    with exclusive(folder):
        code, _, err = run_train(folder, "training.steps=13", more=["--resume"])
    assert code == 2
    assert f"{folder}: another process is at work in this folder" in err


@pytest.fixture
def poisoned_cache(tmp_path, poison, one_shape_cache):
    """(copy of the cache with one NaN frame in one training clip, its id)."""
    return tmp_path / "features", poison(tmp_path / "features", "train", one_shape_cache)


def test_bad_numbers_are_skipped_counted_and_named(poisoned_cache, run_train, read_steps, tmp_path):
    cache, clip = poisoned_cache
    _, screen, _ = run_train(tmp_path / "run", "training.steps=20", cache=cache)
    lines = read_steps(tmp_path / "run")
    bad = [line for line in lines if line["skipped"]]
    named = [line for line in screen.splitlines() if "not finite, update skipped; clips:" in line]
    assert 0 < len(bad) == len(named) < 20
    assert all(clip in line for line in named)
    weights = load_arrays(tmp_path / "run" / "checkpoints" / "step-20")
    assert all(np.isfinite(value).all() for value in weights.values())
    assert int(weights["updates"]) == 20 - len(bad)


def test_too_many_bad_numbers_in_a_row_stop_the_run(poisoned_cache, run_train, read_steps, tmp_path):
    cache, _ = poisoned_cache
    code, _, err = run_train(tmp_path / "run", "training.steps=20", "training.max_bad_steps=1", cache=cache)
    assert code == 1
    assert "1 non-finite updates in a row, all skipped; check the clips named above" in err
    lines, (saved,) = read_steps(tmp_path / "run"), list_checkpoints(tmp_path / "run" / "checkpoints")
    assert any(line["skipped"] for line in lines), "the steps that ended the run are in metrics.jsonl"
    assert saved.name == f"step-{lines[-1]['step']}"


def test_sigterm_ends_a_call_of_any_length_and_saves(run_train, read_steps, tmp_path, monkeypatch):
    """A real signal to this process, in the middle of one call for all steps."""
    folder, main, run = tmp_path / "run", threading.get_ident(), TrainingLoop.run
    before = signal.getsignal(signal.SIGTERM)

    def send(step, begun):
        while step.numpy() == begun:
            time.sleep(0.001)
        if signal.getsignal(signal.SIGTERM) != before:
            signal.pthread_kill(main, signal.SIGTERM)

    def run_and_send(loop, count):
        step = loop._step_functions[0].step
        threading.Thread(target=send, args=(step, step.numpy()), daemon=True).start()
        return run(loop, count)

    monkeypatch.setattr(TrainingLoop, "run", run_and_send)
    endless = (f"training.{name}=3000" for name in ("steps", "steps_per_call", "checkpoint_every", "validate_every"))
    out = run_train(folder, *endless).succeeded()
    (saved,) = list_checkpoints(folder / "checkpoints")
    assert f"SIGTERM: saved {saved.name.replace('-', ' ')}; continue with: xtts-train --resume {folder}" in out
    assert 0 < len(read_steps(folder)) == int(saved.name[5:]) < 3000
