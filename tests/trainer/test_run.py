"""Whole runs on the shared cache: resume, signals, kills, bad numbers."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from xtts.shared.cache_spec import load_spec
from xtts.shared.errors import LockstepError
from xtts.shared.records import Record, frame, parse_example, unframe
from xtts.trainer.checkpoint import list_checkpoints, load_arrays

XTTS_TRAIN = Path(sys.executable).with_name("xtts-train")


def test_a_run_leaves_what_the_design_names(finished_run, read_steps):
    folder, screen = finished_run
    assert {"config.yaml", "run.json", "metrics.jsonl", "checkpoints", "tensorboard"} <= {
        p.name for p in folder.iterdir()
    }
    assert [path.name for path in list_checkpoints(folder / "checkpoints")] == ["step-4", "step-8", "step-12"]
    lines = read_steps(folder)
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert {"loss", "prior", "flow", "duration", "traces"} <= set(lines[0])
    assert all(line["traces"] == 2 for line in lines)
    assert [line["step"] for line in read_steps(folder, "validation")] == [0, 6, 12]
    assert screen.count("compiled bucket") == 2
    assert "step 12/12" in screen
    assert list((folder / "tensorboard").glob("events.out.tfevents.*"))


def test_a_resumed_run_equals_the_uninterrupted_one_to_the_bit(
    finished_run, make_plan, train_quietly, read_steps, tmp_path
):
    whole, _ = finished_run
    for step in (4, 8):
        part = tmp_path / f"from-{step}"
        shutil.copytree(whole, part)
        train_quietly(make_plan(part, resume=part / "checkpoints" / f"step-{step}"))
        assert read_steps(part) == read_steps(whole)
        assert read_steps(part, "validation") == read_steps(whole, "validation")
        ours, theirs = (load_arrays(folder / "checkpoints" / "step-12") for folder in (part, whole))
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_the_rhythm_of_host_calls_does_not_change_the_numbers(
    finished_run, make_plan, train_quietly, read_steps, tmp_path
):
    train_quietly(make_plan(tmp_path / "run", "training.steps_per_call=5", "training.log_every=3"))
    assert read_steps(tmp_path / "run") == read_steps(finished_run[0])


def test_the_loss_falls(make_plan, train_quietly, read_steps, tmp_path):
    train_quietly(
        make_plan(
            tmp_path / "run", "training.steps=120", "training.steps_per_call=40", "training.log_every=40",
            "training.validate_every=120", "training.checkpoint_every=120", "training.warmup_steps=10",
        )
    )  # fmt: skip
    losses = [line["loss"] for line in read_steps(tmp_path / "run")]
    first, last = (line["loss"] for line in read_steps(tmp_path / "run", "validation"))
    assert np.mean(losses[-20:]) < 0.6 * np.mean(losses[:20])
    assert last < first


def test_another_batch_size_goes_on_at_the_same_clips(finished_run, make_plan, train_quietly, tmp_path):
    part = tmp_path / "run"
    shutil.copytree(finished_run[0], part)
    before = load_arrays(part / "checkpoints" / "step-4")["consumed"]
    plan = make_plan(part, "training.batch_size=2", "training.steps=8", resume=part / "checkpoints" / "step-4")
    train_quietly(plan)
    after = load_arrays(part / "checkpoints" / "step-8")["consumed"]
    taken = after - before
    assert (taken >= 0).all()
    assert (taken % np.array(list(plan.sizes.values())) == 0).all()


def test_init_from_takes_the_averaged_weights_alone(finished_run, make_plan, train_quietly, tmp_path):
    source = finished_run[0] / "checkpoints" / "step-12"
    train_quietly(make_plan(tmp_path / "run", "training.steps=4", "training.learning_rate=1e-12", init_from=source))
    taken, saved = load_arrays(tmp_path / "run" / "checkpoints" / "step-4"), load_arrays(source)
    for name in saved:
        if name.startswith("averages/"):
            np.testing.assert_allclose(taken[name.replace("averages", "weights")], saved[name], atol=1e-6)
    assert int(taken["step"]) == 4
    with pytest.raises(LockstepError, match=r"weights of model.decoder_width = 16, expected 18"):
        train_quietly(make_plan(tmp_path / "other", "model.decoder_width=18", init_from=source))


@pytest.fixture
def poisoned_cache(tmp_path, tiny_cache):
    """(copy of the cache with one NaN frame in one training clip, its id); sizes are as before."""
    cache = tmp_path / "features"
    shutil.copytree(tiny_cache, cache)
    spec = load_spec(cache)
    shard = spec.buckets[0].train[0]
    payloads = list(unframe(memoryview((cache / shard.file).read_bytes()), limit_bytes=1 << 24))
    record = parse_example(payloads[0], mel_dtype=spec.mel_dtype, mel_channels=spec.mel_channels)
    mel = record.mel.copy()
    mel[3] = np.nan
    poisoned = Record(**{**vars(record), "mel": mel})
    data = frame(poisoned.to_example()) + b"".join(frame(bytes(p)) for p in payloads[1:])
    (cache / shard.file).write_bytes(data)
    return cache, record.clip_id


def test_bad_numbers_are_skipped_counted_and_named(poisoned_cache, make_plan, train_quietly, read_steps, tmp_path):
    cache, clip = poisoned_cache
    screen = train_quietly(make_plan(tmp_path / "run", "training.steps=20", cache=cache))
    lines = read_steps(tmp_path / "run")
    bad = [line for line in lines if line["skipped"]]
    named = [line for line in screen.splitlines() if "not finite, update skipped; clips:" in line]
    assert 0 < len(bad) == len(named) < 20
    assert all(clip in line for line in named)
    weights = load_arrays(tmp_path / "run" / "checkpoints" / "step-20")
    assert all(np.isfinite(value).all() for value in weights.values())
    assert int(weights["updates"]) == 20 - len(bad)


def test_too_many_bad_numbers_in_a_row_stop_the_run(poisoned_cache, make_plan, train_quietly, tmp_path):
    cache, _ = poisoned_cache
    with pytest.raises(LockstepError, match=r"step \d+: 1 non-finite updates in a row, all skipped; look at the clips"):
        train_quietly(make_plan(tmp_path / "run", "training.steps=20", "training.max_bad_steps=1", cache=cache))


@pytest.fixture
def start(tiny_cache, micro_flags):
    """`start(folder, *arguments)`: xtts-train in a process of its own, many short calls."""

    def run(folder, *arguments):
        sets = [*micro_flags, "training.steps=400", "training.steps_per_call=1", "training.log_every=1",
                "training.checkpoint_every=2", "training.validate_every=1000"]  # fmt: skip
        command = [XTTS_TRAIN, "--cache", tiny_cache, "--out", folder, *arguments]
        command += [part for value in sets for part in ("--set", value)]
        return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return run


def wait_for_step(process, folder, step):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if any(int(path.name[5:]) >= step for path in list_checkpoints(folder / "checkpoints")):
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    pytest.fail("the run did not get that far")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_says_how_to_continue(start, tmp_path, number):
    process = start(tmp_path / "run")
    wait_for_step(process, tmp_path / "run", 2)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in err
    saved = int(list_checkpoints(tmp_path / "run" / "checkpoints")[-1].name[5:])
    assert f"{number.name}: saved step {saved}; continue with: xtts-train --resume {tmp_path / 'run'}" in out


@pytest.mark.slow
def test_kill_9_at_any_moment_then_resume_gives_the_same_losses(start, tmp_path, read_steps):
    """Killed six times, saves every second step: the losses are those of one run, to the bit."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    process = start(whole, "--steps", "40")
    random = np.random.default_rng(0)
    for target in (2, 6, 12, 18, 26, 34):
        killed = start(part, "--resume", "--steps", "40")
        wait_for_step(killed, part, target)
        time.sleep(random.uniform(0, 0.15))
        killed.kill()
        killed.communicate()
    assert start(part, "--resume", "--steps", "40").wait(300) == 0
    process.communicate(timeout=300)
    assert process.returncode == 0
    assert len(read_steps(whole)) == 40
    assert read_steps(part) == read_steps(whole)
