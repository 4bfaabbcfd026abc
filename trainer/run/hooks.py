"""Hooks: what a run does between two calls of its loop, `hook(run, chunk)`.

`drive` calls them after each chunk of steps, in this order; a user's own come last, in rank 0 alone:

1. `SkippedUpdates` names the clips whose numbers were not finite, and ends the run after too many in a row
2. `validate` computes the held-out losses (`training.validate_every`), puts them into the chunk, and lets the learning
   rate decay when they no longer improve (`training.patience`)
3. `save` saves a checkpoint (`training.checkpoint_every`)
4. `speak` speaks the samples (`training.samples_every`)

A call ends at the next step that one of them waits for; the device is idle while they work. After a signal they begin
no long work. What the steps gave is reported while the next call runs, or before the run ends.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xtts.trainer.loop.chunk import Chunk
from xtts.trainer.loop.failures import compile_fix, explained
from xtts.trainer.loop.schedule import decay_start
from xtts.trainer.models.samples import SAMPLES
from xtts.trainer.run.bad_clips import SkippedUpdates, clip_names
from xtts.trainer.run.hosted_run import HostedRun

if TYPE_CHECKING:
    from xtts.trainer.run.training_run import TrainingRun

Hook = Callable[["TrainingRun", Chunk], None]
"""Function that is called with the run and the steps of each host call."""


def drive(run: HostedRun, hooks: Sequence[Callable[[Any, Chunk], None]] = ()) -> None:
    """Compile, then train to the last step or until asked to stop; always leave a checkpoint.

    hooks: called after the run's own.
    """
    every: list[Callable[[Any, Chunk], None]] = [SkippedUpdates(), validate, save, speak, *hooks]
    run.compile()
    make_up(run)
    while run.goes_on:
        chunk = run.advance()
        for hook in every:
            hook(run, chunk)
    run.finish()


def save(run: HostedRun, _: Chunk) -> None:
    """Save a checkpoint if it is due, after a signal, and where the learning rate begins to decay."""
    training = run.training
    if run.stop_reason or run.is_due(training.checkpoint_every) or run.step == decay_start(training):
        run.save()


def speak(run: "TrainingRun", _: Chunk) -> None:
    """Speak the fixed sentences with the averaged weights if they are due; not after a signal.

    A failure is reported in one line; the run continues.
    """
    if run.samples.empty or run.stop_reason or not run.is_due(run.training.samples_every or run.training.steps):
        return
    try:
        with explained(f"compiling the {SAMPLES}", compile_fix()):
            run.graph.result(run.compiler.step(SAMPLES))
        began = time.perf_counter()
        with run.averaged_weights():
            spoken = run.graph.run(run.samples.speak)
        run.reporter.samples(run.step, run.samples, spoken, began=began)
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        run.reporter.say(f"samples at step {run.step} skipped ({reason}); training continues")


def validate(run: HostedRun, chunk: Chunk) -> None:
    """Validate if it is due, with the averaged weights."""
    if run.is_due(run.training.validate_every):
        chunk.validation.update(_validate(run))


def make_up(run: HostedRun) -> None:
    """Validate a resumed run that was stopped before a due validation."""
    due = run.step > 0 and run.is_due(run.training.validate_every)
    validated = [row["step"] for row in run.plan.folder.metrics() if row["split"] == "validation"]
    if run.agree(due and run.step not in validated):
        _validate(run)


def _validate(run: HostedRun) -> dict[str, float]:
    """Losses by name, the total as `loss`; empty, and nothing recorded, if a signal comes before the end."""
    loop, title = run.validation, f"validation at step {run.step}"
    if not loop.batches or run.stop_reason:
        return {}
    with run.averaged_weights(), run.reading_cache(title):
        result = run.graph.run(loop.run)
    if result is None:
        run.note_stop()
        return {}
    losses, bad = result
    if bad:
        (clips,) = clip_names(run.plan.cache, run.plan.spec, "validation", bad[:1])
        run.reporter.say(
            f"{title}: {len(bad)} of {len(loop.batches)} batches skipped (not finite); clips of the first: "
            f"{', '.join(clips)}"
        )
    total = run.metrics.total(losses)
    run.reporter.validation(run.step, losses, total, skipped=len(bad))
    if run.best.note(run.step, run.metrics.score(losses)):
        run.save()
    elif run.is_stale:
        run.begin_decay()
    return {"loss": total, **losses}
