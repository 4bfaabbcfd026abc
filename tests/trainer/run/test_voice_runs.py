"""Models of voice latents in runs: repeated to the bit."""

import re
import shutil

import numpy as np
import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.stored.checkpoint import (
    check_resumable,
    check_weights,
    identity_of,
    load_arrays,
    read_meta,
    save_checkpoint,
)

TWO_PARTS = (
    "model.voice_latents=4", "model.voice_width=16", "model.voice_frames=24",
    "shapes.buckets=1", "training.steps=4", "training.checkpoint_every=2", "training.validate_every=4",
)  # fmt: skip


@pytest.mark.long
def test_a_resumed_run_with_voices_equals_the_uninterrupted_one(run_train, one_shape_cache, read_steps, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    code, _, err = run_train(whole, *TWO_PARTS, cache=one_shape_cache)
    assert code == 0, err
    shutil.copytree(whole, part)
    middle = ["--resume", part / "checkpoints" / "step-2"]
    code, _, err = run_train(part, *TWO_PARTS, cache=one_shape_cache, more=middle)
    assert code == 0, err
    assert read_steps(part) == read_steps(whole)
    ours, theirs = (load_arrays(folder / "checkpoints" / "step-4") for folder in (part, whole))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("change", ["model.dropout=0.2", "model.voice_vtlp=0.0"])
def test_weights_serve_a_model_that_drops_or_perturbs_otherwise(tmp_path, make_plan, change):
    plans = [make_plan(tmp_path / "run", "model.voice_latents=4", *more) for more in ((), (change,))]
    old, new = (identity_of(plan.config, plan.spec) for plan in plans)
    path = save_checkpoint(tmp_path, {"step": np.int64(1)}, step=1, identity=old, progress={})
    check_weights(path, read_meta(path)["settings"], new)
    with pytest.raises(LockstepError, match="made with " + re.escape(change.split("=")[0])):
        check_resumable(path, new)
