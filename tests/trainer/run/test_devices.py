"""Several workers train as one device does, two of them, or LOCKSTEP_WORKERS. The least model, few steps."""

import os
import shutil
import signal
import time

import numpy as np
import pytest
from device_programs import LEAST, STEPS, Program, assert_same_run, start_workers

from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.stored.checkpoint import list_checkpoints, load_arrays, step_of

WORKERS = int(os.environ.get("LOCKSTEP_WORKERS", "2"))
ENDLESS = "training.steps=100000"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def plan_of(make_plan):
    """`plan_of(folder, strategy, *more, ...)`: the same run in another folder."""
    return lambda folder, strategy, *more, **paths: make_plan(
        folder, *LEAST, f"training.strategy={strategy}", *more, **paths
    )


@pytest.fixture(scope="module")
def together(tmp_path_factory, plan_of, read_steps):
    """A longer run of several workers, of which the last got a signal after a while, and its folder."""
    folder = tmp_path_factory.mktemp("together")
    programs = start_workers([plan_of(folder / "run", "multiworker", ENDLESS)] * WORKERS, folder)
    wait_for_steps(programs, folder / "run", read_steps, 2 * STEPS)
    os.kill(programs[-1].pid, signal.SIGTERM)
    assert [program.wait() for program in programs] == [0] * WORKERS, "\n".join(one.screen for one in programs)
    return programs, folder / "run"


def wait_for_steps(programs, folder, read_steps, step):
    while not (folder / "metrics.jsonl").exists() or not any(line["step"] >= step for line in read_steps(folder)):
        assert all(program.is_alive() for program in programs), "\n".join(one.screen for one in programs)
        time.sleep(0.1)


def test_workers_train_as_one_device_does(together, plan_of, read_steps, tmp_path):
    (programs, folder), alone = together, Program(plan_of(tmp_path / "alone", "single"), tmp_path)
    assert alone.wait() == 0, alone.screen
    assert_same_run(folder, tmp_path / "alone", read_steps)
    first, figures = programs[0].state, programs[0].figures
    assert all(np.array_equal(first[name], value) for one in programs for name, value in one.state.items())
    for program in programs:
        assert program.figures == figures
    assert figures["update_traces"] == [1]
    assert sum(trace.startswith("training") for trace in figures["traces"][0]) == 2
    assert figures["host_calls"] <= 1 + figures["step"] // 2  # marks at multiples of 4 and 6
    assert "loss" in programs[0].screen
    assert "loss" not in programs[1].screen  # only rank 0 reports


def test_a_signal_to_one_worker_stops_all_of_them_with_a_checkpoint(together):
    programs, folder = together
    step = programs[0].figures["step"]
    assert not any(program.figures["complete"] for program in programs)
    assert f"a signal to another worker: saved step {step}; continue with: xtts-train --resume" in programs[0].screen
    assert list_checkpoints(folder / "checkpoints")[-1].name == f"step-{step}"


def test_the_end_of_worker_0_ends_the_others_with_a_clear_word(together, plan_of, read_steps, tmp_path):
    run = shutil.copytree(together[1], tmp_path / "run")
    plan = plan_of(run, "multiworker", ENDLESS, resume=run / "checkpoints" / "step-4")
    (run / "metrics.jsonl").unlink()  # it has the steps waited for
    programs = start_workers([plan] * WORKERS, tmp_path)
    wait_for_steps(programs, run, read_steps, STEPS)
    programs.pop(0).kill()
    for program in programs:
        assert program.wait() == 1, program.screen
        assert "worker 0 has ended; see its output, then start all workers again, any number" in program.screen
        assert "Traceback" not in program.screen


UNSAVED = ("training.steps_per_call=10", "training.checkpoint_every=100000", "training.validate_every=100000")


def test_a_worker_that_is_killed_costs_no_step(plan_of, read_steps, tmp_path):
    """Worker 0 saves the last whole step: nothing else has saved one, and the run continues after it."""
    run = tmp_path / "run"
    programs = start_workers([plan_of(run, "multiworker", ENDLESS, *UNSAVED)] * WORKERS, tmp_path)
    wait_for_steps(programs, run, read_steps, 50)
    programs[-1].kill()
    assert programs[0].wait() == 1, programs[0].screen
    (checkpoint,) = list_checkpoints(run / "checkpoints")
    step, arrays = step_of(checkpoint), load_arrays(checkpoint)
    assert step >= read_steps(run)[-1]["step"] >= 50
    assert f"saved step {step}" in programs[0].screen
    assert f"worker {WORKERS - 1} has ended" in programs[0].screen
    assert f"xtts-train --resume {run}" in programs[0].screen
    plan = plan_of(run, "single", *UNSAVED, f"training.steps={step + 10}", resume=checkpoint)
    sizes = [bucket.batch_size for bucket in training_buckets(plan.cache, plan.spec, plan.config) if bucket.trains]
    assert arrays["step"] == step == (arrays["consumed"] / sizes).sum(), "no weight is newer than the position"
    program = Program(plan, tmp_path)
    assert program.wait() == 0, program.screen
    assert read_steps(run)[-1]["step"] == step + 10


def test_workers_that_differ_are_refused(plan_of, tmp_path):
    plans = [plan_of(tmp_path / "run", "multiworker", f"training.learning_rate={rate}") for rate in (0.1, 0.5)]
    for program in start_workers(plans, tmp_path):
        assert program.wait() == 2
        assert "worker 1: its training.learning_rate differs from worker 0's" in program.screen
        assert "Traceback" not in program.screen
