"""Training of a plan that is held meanwhile, as `xtts-train` does."""

from collections.abc import Sequence

from rich.console import Console

from xtts.trainer.run import trainer
from xtts.trainer.run.hooks import Hook
from xtts.trainer.run.run_plan import RunPlan


def train(plan: RunPlan, console: Console, hooks: Sequence[Hook] = ()) -> bool:
    """Train to the last step; False if the run was asked to stop."""
    with plan.held():
        return trainer.train(plan, console, hooks)
