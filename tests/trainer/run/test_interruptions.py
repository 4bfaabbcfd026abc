"""A run that `kill -9` interrupts at random moments."""

import time

import numpy as np
import pytest
from fuzzing import fresh_seed

from xtts.trainer.stored.checkpoint import list_checkpoints, load_arrays

STEPS, KILLS = 400, 6
SETTINGS = (
    f"training.steps={STEPS}", "training.steps_per_call=1", "training.checkpoint_every=2",
    "training.validate_every=1000", "training.decay_fraction=0",
)


def newest(folder):
    return max((int(path.name[5:]) for path in list_checkpoints(folder / "checkpoints")), default=0)


@pytest.mark.long
def test_kill_9_at_any_moment_then_resume_gives_the_same_losses(start_train, read_steps, tmp_path):
    """With a save at every second step, inside which some of the kills fall.

    All in processes of their own: in that of the tests, steps search in other blocks and sum in another order.
    """
    random, folder, whole = np.random.default_rng(fresh_seed()), tmp_path / "run", tmp_path / "whole"
    _, said = start_train(whole, *SETTINGS).communicate()
    assert newest(whole) == STEPS, said
    for _ in range(KILLS):
        process, goal = start_train(folder, *SETTINGS, more=["--resume", ""]), newest(folder) + 2
        while newest(folder) < goal:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.communicate()
    _, said = start_train(folder, *SETTINGS, more=["--resume", ""]).communicate()
    assert newest(folder) == STEPS, said
    assert read_steps(folder) == read_steps(whole)
    ours, theirs = (load_arrays(run / "checkpoints" / f"step-{STEPS}") for run in (folder, whole))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
