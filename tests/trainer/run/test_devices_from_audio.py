"""Several devices train straight from audio as one does, also where a wav cannot be read.

One clip for each device in a batch of the largest bucket: the share of a device may be padding rows alone.
"""

import re
import shutil

import numpy as np
import pytest
from cache_files import build_cache
from device_programs import LEAST, TOLERANCE, assert_same_run, start_workers

from xtts.shared.config_files import load_config
from xtts.trainer.stored.checkpoint import list_checkpoints

WORKERS, RESUMED = 2, 4
TRAINED, HELD_OUT = "tone-0005", "tone-0018"
"""The clips that cannot be read; the first is drawn after step `RESUMED` for the first time."""
SETTINGS = {"shapes.buckets": 2, "split.validation_fraction": 0.1, "shards.mel_dtype": "float32"}
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def plan_of(tmp_path_factory, tiny_corpus, make_plan):
    """`plan_of(folder, strategy, *more, ...)`: a run from audio of which two wavs broke after the build."""
    root = tmp_path_factory.mktemp("broken")
    corpus, cache = shutil.copytree(tiny_corpus, root / "corpus"), root / "features"
    config = load_config("tiny", flags=SETTINGS)
    build_cache(corpus, cache, config, index_only=True)
    for name in (TRAINED, HELD_OUT):
        wav = corpus / "wavs" / f"{name}.wav"
        wav.write_bytes(b"\x07" * wav.stat().st_size)
    least = (*LEAST, "training.batch_size=2", "training.gradient_accumulation_steps=2", "shards.mel_dtype=float32")
    return lambda folder, strategy, *more, **paths: make_plan(
        folder, *least, "data.max_unreadable_fraction=0.5", f"training.strategy={strategy}", *more, cache=cache, **paths
    )


def unread(program):
    """(where, clip) of each line about a clip that cannot be read."""
    return re.findall(r"^(.*): the audio of (\S+) is missing, broken", program.screen, re.MULTILINE)


def test_workers_train_from_audio_as_one_device_does(alone, plan_of, read_steps, tmp_path):
    programs = start_workers([plan_of(tmp_path / "run", "multiworker")] * WORKERS, tmp_path)
    assert [program.wait() for program in programs] == [0] * WORKERS, "\n".join(one.screen for one in programs)
    assert_same_run(tmp_path / "run", alone[1], read_steps)
    first, other = (program.state for program in programs)
    assert all(np.array_equal(first[name], value) for name, value in other.items())
    assert [name for _, name in unread(alone[0])] == [TRAINED, HELD_OUT]
    assert unread(programs[0]) == unread(alone[0])
    assert unread(programs[1]) == []  # only rank 0 reports


def test_too_many_unread_clips_end_all_workers_of_a_resumed_run(alone, plan_of, read_steps, tmp_path):
    run = shutil.copytree(alone[1], tmp_path / "run")
    checkpoint = run / "checkpoints" / f"step-{RESUMED}"
    plan = plan_of(run, "multiworker", "data.max_unreadable_fraction=0", "training.steps_per_call=1", resume=checkpoint)
    programs = start_workers([plan] * WORKERS, tmp_path)
    assert [program.wait() for program in programs] == [1] * WORKERS, "\n".join(one.screen for one in programs)
    step = next(line["step"] for line in read_steps(alone[1]) if line["unread_clips"])
    assert step > RESUMED
    for program in programs:
        assert re.search(rf"step {step}: 1 of \d+ clips could not be read: {TRAINED}", program.screen), program.screen
        assert "Traceback" not in program.screen
    assert [line["step"] for line in read_steps(run)] == [*range(1, step + 1)]
    for line, other in zip(read_steps(run), read_steps(alone[1]), strict=False):
        assert line["loss"] == pytest.approx(other["loss"], rel=TOLERANCE)
    assert list_checkpoints(run / "checkpoints")[-1].name == f"step-{step}"
