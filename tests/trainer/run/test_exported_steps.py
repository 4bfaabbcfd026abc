"""Runs without TensorFlow, by exported steps: the numbers and files of all runs."""

import json
import re
import shutil
import signal
import subprocess
import sys

import pytest
from held_runs import SMALL_VOCODER, assert_same_end, close

from xtts.trainer import cli
from xtts.trainer.loop.jax_runtime import JaxRuntime, StepQueue
from xtts.trainer.loop.step_names import EXCHANGE, UPDATE
from xtts.trainer.models.acoustic.objective import ACOUSTIC
from xtts.trainer.stored.checkpoint import list_checkpoints, load_arrays, read_meta, save_checkpoint

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.long
BLOCKED = """
import sys
sys.modules.update(dict.fromkeys(("tensorflow", "keras", "tensorboard", "tf2onnx")))
from xtts.trainer.cli import main
main()
"""


@pytest.fixture(scope="module")
def exported(run_train, tmp_path_factory):
    """A run of 12 steps, of which none is trained, with its steps."""
    folder = tmp_path_factory.mktemp("exported") / "run"
    screen = run_train(folder, more=["--export-steps"]).succeeded()
    assert f"and train with: xtts-train --resume {folder}" in "".join(screen.split("\n"))
    return folder


@pytest.fixture
def by_steps(exported, call, one_shape_cache, tmp_path, monkeypatch):
    """`by_steps(*arguments)`: resume a copy of `exported` as where TensorFlow is not installed."""
    folder = shutil.copytree(exported, tmp_path / "copy")

    def resume(*arguments, at=folder):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "tensorflow", None)
            return call(cli.main, "--resume", at, "--cache", one_shape_cache, *arguments)

    return folder, resume


def test_a_run_by_exported_steps_is_one_by_tensorflow(by_steps, finished_run, read_steps):
    (folder, resume), (whole, _) = by_steps, finished_run
    screen = resume().succeeded()
    assert "saved step 12; export its voice where TensorFlow is installed: xtts-train --finish" in screen
    for split in ("train", "validation"):
        close(read_steps(folder, split), read_steps(whole, split))
    assert_same_end(folder, whole)


def test_they_continue_a_run_by_tensorflow(by_steps, finished_run, read_steps):
    (folder, resume), (whole, _) = by_steps, finished_run
    shutil.copytree(whole / "checkpoints" / "step-8", folder / "checkpoints" / "step-8")
    resume().succeeded()
    close(read_steps(folder), read_steps(whole)[8:])


@pytest.mark.parametrize(("arguments", "message"), [
    (["--set", "training.weight_decay=0.5"],
     r"steps: exported with training.weight_decay = 0.01, expected 0.5; export the steps again"),
    (["--steps", "99"], r"steps: steps 0 to 12, expected 0 to 99; export the steps again"),
])
def test_other_settings_and_longer_runs_are_refused(arguments, message, by_steps, call):
    code, _, err = by_steps[1](*arguments)
    assert (code, err.strip().endswith(message)) == (2, True), err


def test_a_damaged_shard_is_named(by_steps, one_shape_cache, tmp_path):
    damaged = shutil.copytree(one_shape_cache, tmp_path / "cache")
    for shard in damaged.glob("train/*/*.tfrecord"):
        data = bytearray(shard.read_bytes())
        data[100] ^= 1
        shard.write_bytes(data)
    code, _, err = by_steps[1]("--cache", damaged)
    assert code == 1, err
    assert ".tfrecord record 0: cannot be read: data checksum does not match; run xtts-precompute verify" in err


def test_a_failed_device_leaves_the_last_whole_step(by_steps, monkeypatch):
    (folder, resume), call, updates = by_steps, JaxRuntime.call, []

    def failing(runtime, name, *inputs):
        if name == UPDATE:
            updates.append(name)
        if len(updates) == 7:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 123456789 bytes.")
        return call(runtime, name, *inputs)

    monkeypatch.setattr(JaxRuntime, "call", failing)
    code, out, err = resume()
    assert (code, "saved step 6\n" in out) == (1, True), err
    assert err.startswith("error: steps after 6: out of memory; lower training.batch_size")
    assert [path.name for path in list_checkpoints(folder / "checkpoints")][-1] == "step-6"


def test_steps_that_are_not_finite_end_the_run_with_their_clips_and_a_checkpoint(by_steps, monkeypatch):
    (_, resume), add = by_steps, StepQueue.add
    skipped = ACOUSTIC.step.index("skipped")
    monkeypatch.setattr(
        StepQueue, "add", lambda queue, metrics, *times: add(queue, metrics.at[skipped].set(1.0), *times)
    )
    code, out, err = resume("--set", "training.max_bad_steps=3")
    assert (code, "saved step 4\n" in out) == (1, True), err
    assert err.startswith("error: step 3: 3 non-finite updates in a row, all skipped; check the clips named above")
    assert re.search(r"step 1: loss or gradient not finite, update skipped; clips: tone-\d+", out), out


def test_a_validation_that_a_signal_cuts_off_is_made_up_for(by_steps, finished_run, read_steps, monkeypatch):
    (folder, resume), call, signalled = by_steps, JaxRuntime.call, []

    def signal_once(runtime, name, *inputs):
        if name == EXCHANGE and not signalled:
            signalled.append(name)
            signal.raise_signal(signal.SIGTERM)
        return call(runtime, name, *inputs)

    monkeypatch.setattr(JaxRuntime, "call", signal_once)
    assert "SIGTERM: saved step 6" in resume().succeeded()
    assert read_steps(folder, "validation") == []
    resume().succeeded()
    close(read_steps(folder, "validation"), read_steps(finished_run[0], "validation"))


def test_a_checkpoint_at_other_clips_is_refused(by_steps, finished_run):
    """As after some steps elsewhere with another batch size."""
    (folder, resume), whole = by_steps, finished_run[0] / "checkpoints" / "step-8"
    arrays = load_arrays(whole)
    arrays["consumed"] = arrays["consumed"] + 1
    identity = {key: value for key, value in read_meta(whole).items() if key not in ("format_version", "sha256")}
    progress = identity.pop("progress")
    save_checkpoint(folder / "checkpoints", arrays, step=identity.pop("step"), identity=identity, progress=progress)
    code, _, err = resume()
    assert (code, "/step-8, expected the order of the run; export the steps again\n" in err) == (2, True), err


def test_a_vocoder_trains_in_a_process_that_cannot_import_tensorflow(crop_cache, run_train, read_steps, tmp_path):
    shared = [*SMALL_VOCODER, "training.steps=4", "training.samples_every=null"]
    for name, more in (("whole", []), ("by-steps", ["--export-steps"])):
        run_train(tmp_path / name, *shared, cache=crop_cache, more=["--config", "vocoder", *more]).succeeded()
    command = [sys.executable, "-c", BLOCKED, "--resume", tmp_path / "by-steps", "--cache", crop_cache]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # The compilers sum in other orders, and the discriminator's gradient, a small difference, shows it first.
    close(read_steps(tmp_path / "by-steps"), read_steps(tmp_path / "whole"), 1e-2)
    assert json.loads((tmp_path / "by-steps" / "checkpoints" / "step-4" / "checkpoint.json").read_text())["step"] == 4
