"""The life of a training run: join the other workers, train, and leave the voice."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from xtts.trainer.loop.compiler import Compiler
from xtts.trainer.loop.process_group import join_group
from xtts.trainer.run.hooks import Hook, drive
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.training_run import TrainingRun
from xtts.trainer.system.device import suited_to, weakest_card


def train(plan: RunPlan, console: Console, hooks: Sequence[Hook] = ()) -> bool:
    """Train to the last step, or until asked to stop (then False); always leaves a checkpoint.

    Call it inside `plan.held()`. hooks: called in rank 0, after the run's own.
    """
    group = join_group(plan.config.training)
    config = suited_to(weakest_card(), plan.config, partial(console.print, highlight=False, soft_wrap=True))
    plan = replace(plan, config=config)  # which the run folder records: a run continues as it began
    with Compiler() as compiler, TrainingRun(plan, console, compiler, group) as run:
        drive(run, hooks if plan.is_rank_0 else ())
    return not run.stop_reason


def train_to_voice(plan: RunPlan, console: Console, *, hooks: Sequence[Hook] = (), data: Path | None = None) -> bool:
    """Train what is left of a run, and leave its voice in RUN/voice/; False if it was asked to stop before.

    data: folder of the corpus, as in `finish_run`.
    """
    from xtts.trainer.run.finish import finish_run

    with plan.held():
        if plan.steps_done < plan.config.training.steps and not train(plan, console, hooks):
            return False
        if plan.is_rank_0:
            finish_run(plan.folder.path, console, data)
    return True
