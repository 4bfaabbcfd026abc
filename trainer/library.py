"""Stage 2 for Python programs: `from xtts.trainer import train`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from xtts.shared.config_flags import config_names
from xtts.shared.errors import LockstepError
from xtts.trainer.run.run_plan import RunPlan, make_plan, newest
from xtts.trainer.stored.checkpoint import step_of
from xtts.trainer.system.tensorflow_import import tensorflow_import

if TYPE_CHECKING:
    from xtts.trainer.run.hooks import Hook

__all__ = ["TrainingResult", "train"]


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """State of a run after training."""

    run: Path
    """Run folder: config.yaml, metrics.jsonl, checkpoints/, tensorboard/, and voice/ once it is complete."""
    checkpoint: Path
    """The newest checkpoint."""
    step: int
    """Updates so far."""
    complete: bool
    """False after a signal, which ends a run at its next step with a checkpoint."""


def train(
    cache: str | PathLike[str] | None = None,
    *,
    config: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    settings: Mapping[str, object] | None = None,
    out: str | PathLike[str] | None = None,
    resume: bool | str | PathLike[str] = False,
    init_from: str | PathLike[str] | None = None,
    hooks: "Sequence[Hook]" = (),
    quiet: bool = False,
) -> TrainingResult:
    """Train on a cache of stage 1 with locked, compiled steps, and export the voice, as `xtts-train` does.

    This imports TensorFlow and configures it for the whole process: its own graph optimizer is switched off, and XLA
    keeps compiled steps in the user's cache folder (unless TensorFlow was imported before).

    Args:
        cache: Folder or URL of the cache (default: "features", or the cache of the resumed run).
        config: YAML file, or a name in configs/ such as "normal" (default: "tiny", or the config of the resumed run);
            of several, later ones win.
        settings: Single keys that override those, as in `{"training.steps": 1000}`.
        out: Run folder (default: runs/SIZE-CACHE).
        resume: True continues the run in `out` if there is one; a path continues that run folder or checkpoint.
        init_from: Checkpoint or exported folder whose averaged weights a new run starts from, or "nothing" (default:
            our voice, for the size tiny on less than three hours).
        hooks: Functions `hook(run, chunk)`, called with the `TrainingRun` and the `Chunk` of each host call: its steps,
            and the losses of a validation after them. They come after those of `trainer/run/hooks.py`; the device
            waits for them.
        quiet: Print nothing, unless a URL is copied (on stderr); metrics.jsonl still has every step.

    Returns:
        The state of the run; a run that was already complete is unchanged.

    Raises:
        LockstepError: The cache, the settings or the checkpoint do not fit, or losses stay non-finite. Its message
            says what to do.
    """
    console = Console(quiet=quiet)
    given = None if resume is False else "" if resume is True else str(resume)
    plan = make_plan(
        config_names(config), (), settings or {}, cache=str(cache) if cache else None,
        out=Path(out) if out else None, resume=given, init_from=Path(init_from) if init_from else None,
        say=partial(console.print, highlight=False, soft_wrap=True),
    )
    if plan.is_finished:
        return _result(plan, complete=True)
    with tensorflow_import():
        from xtts.trainer.run.trainer import train_to_voice

    return _result(plan, complete=train_to_voice(plan, console, hooks=hooks))


def _result(plan: RunPlan, *, complete: bool) -> TrainingResult:
    folder = plan.folder
    checkpoint = newest(folder)
    if checkpoint is None:
        raise LockstepError(str(folder.path), found="no checkpoint", fix="train at least one step")
    return TrainingResult(run=folder.path, checkpoint=checkpoint, step=step_of(checkpoint), complete=complete)
