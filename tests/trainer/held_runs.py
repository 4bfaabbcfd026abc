"""Training of a plan that is held meanwhile, as `xtts-train` does; and whether two runs are alike."""

from collections.abc import Sequence

import numpy as np
import pytest
from rich.console import Console

from xtts.trainer.run import trainer
from xtts.trainer.run.hooks import Hook
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.stored.checkpoint import load_arrays

SMALL_VOCODER = (
    "audio.crop_frames=32", "audio.crop_pitch=0", "vocoder.width=16", "vocoder.blocks=1", "vocoder.expansion=2",
    "vocoder.discriminator_width=8",
)
"""On `crop_cache`."""


def train(plan: RunPlan, console: Console, hooks: Sequence[Hook] = ()) -> bool:
    """Train to the last step; False if the run was asked to stop."""
    with plan.held():
        return trainer.train(plan, console, hooks)


def close(ours, theirs, limit=1e-4):
    """Assert that lines of `read_steps` have the same figures."""
    for mine, other in zip(ours, theirs, strict=True):
        for name in other.keys() - {"split"}:
            assert mine[name] == pytest.approx(other[name], rel=limit, abs=limit), name


def assert_same_end(run, other):
    """Assert that checkpoints of two runs have the same names, and step 12 the same arrays."""
    names, theirs = ({path.name for path in (each / "checkpoints").iterdir()} for each in (run, other))
    assert names - {"step-0", "superseded"} == theirs
    ours, theirs = (load_arrays(each / "checkpoints" / "step-12") for each in (run, other))
    assert {name: array.dtype for name, array in ours.items()} == {name: array.dtype for name, array in theirs.items()}
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, atol=1e-3, err_msg=name)
