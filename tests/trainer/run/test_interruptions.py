"""Runs that `kill -9` interrupts at any moment. The least model, one shape."""

import signal
import time
from functools import partial

import numpy as np
import pytest
from cache_files import build_cache
from fuzzing import fresh_seed

from xtts.shared.config_files import load_config
from xtts.trainer.stored.checkpoint import list_checkpoints, load_arrays

pytestmark = pytest.mark.long
STEPS = 400
SETTINGS = (
    "shapes.buckets=1", "split.validation_fraction=0", "model.text_expansion=1", "model.duration_layers=1",
    "model.decoder_expansion=1", "training.steps_per_call=1", "training.log_every=1", "training.checkpoint_every=2",
    "training.validate_every=1000", "training.keep_checkpoints=3", f"training.steps={STEPS}",
)  # fmt: skip
KILLS = ("start", "save", "any", "save", "any") * 2
"""Where each kill falls: before the first new step, inside a save, anywhere. A start costs seconds."""


@pytest.fixture(scope="module")
def one_shape(tmp_path_factory, tiny_corpus):
    """A cache of one shape without held-out clips: two compiled functions less at every start."""
    cache = tmp_path_factory.mktemp("one") / "features"
    settings = {"shapes.buckets": 1, "split.validation_fraction": 0.0}
    build_cache(tiny_corpus, cache, load_config("tiny", flags=settings))
    return cache


@pytest.fixture(scope="module")
def start(start_train, one_shape):
    """`start(folder)`: the run, continued where it stopped."""
    return lambda folder: start_train(folder, *SETTINGS, cache=one_shape, more=["--resume", ""])


@pytest.fixture(scope="module")
def whole(tmp_path_factory, start):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    _, err = start(folder).communicate()
    assert newest(folder) == STEPS, err
    return folder


def newest(folder):
    return max((int(path.name[5:]) for path in list_checkpoints(folder / "checkpoints")), default=0)


def wait_until(happened, process, every=0.01):
    while not happened():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(every)


def half_saved(folder):
    return any(folder.glob("checkpoints/.step-*.partial"))


def stopped_in_a_save(process, folder):
    """Whether a run is inside a save, and then stopped there."""
    if half_saved(folder):
        process.send_signal(signal.SIGSTOP)
        if half_saved(folder):
            return True
        process.send_signal(signal.SIGCONT)
    return False


def kill_repeatedly(start, folder, seed):
    """Kill a run at each of KILLS, then let it end."""
    random = np.random.default_rng(seed)
    for place in KILLS:
        process, goal = start(folder), newest(folder) + random.integers(2, 9)
        if place == "start":
            time.sleep(random.uniform(0, 2))
        else:
            wait_until(lambda goal=goal: newest(folder) >= goal, process)
            if place == "save":
                wait_until(partial(stopped_in_a_save, process, folder), process, every=0.001)
            else:
                time.sleep(random.uniform(0, 0.05))
        assert process.poll() is None, "the run ended before it could be killed"
        process.kill()
        process.communicate()
    _, err = start(folder).communicate()
    assert newest(folder) == STEPS, err


def test_kill_9_at_ten_moments_then_resume_gives_the_same_losses(start, whole, read_steps, tmp_path):
    """A run killed ten times, with a save every second step: its losses are those of one run, bit for bit."""
    folder = tmp_path / "run"
    kill_repeatedly(start, folder, fresh_seed())
    assert len(read_steps(whole)) == STEPS
    assert read_steps(folder) == read_steps(whole)
    expected = load_arrays(whole / "checkpoints" / f"step-{STEPS}")
    found = load_arrays(folder / "checkpoints" / f"step-{STEPS}")
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
