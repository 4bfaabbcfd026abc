"""Hooks: what a run does between two calls of its loop, `for chunk in loop: for hook in hooks: hook(chunk)`.

They are called with each chunk of steps, in this order:

1. `stop` notes that a signal ended the call, or that the kernel has no memory maps for more compiled steps
2. `Reporter.keep` writes metrics.jsonl, TensorBoard and the terminal, while the next call runs, or before the run ends
3. `SkippedUpdates` names the clips whose numbers were not finite, and ends the run after too many in a row
4. `UnreadClips` names the clips whose audio could not be read, and ends the run when they are too many
5. `Validate` computes the held-out losses (`training.validate_every`) and puts them into the chunk
6. `save` saves a checkpoint (`training.checkpoint_every`)
7. `speak` speaks the samples (`training.samples_every`)
8. the user's own, in rank 0 alone

A call ends at the next step that one of them waits for; the device is idle while they work.
"""

import time
from collections.abc import Callable

import numpy as np

from xtts.trainer.engine.failures import compile_fix, explained
from xtts.trainer.engine.schedule import decay_start
from xtts.trainer.reporting.bad_clips import UnreadClips, clip_names
from xtts.trainer.reporting.reporter import Chunk
from xtts.trainer.reporting.samples import SAMPLES
from xtts.trainer.run.best_validation import REMEDY, Overfitting, mean_losses
from xtts.trainer.run.session import Session

Hook = Callable[[Chunk], None]
"""Called with the steps of each host call."""


def stop(run: Session, chunk: Chunk) -> None:
    """Record why the run ends before its last step; the hooks that follow then begin no long work."""
    if chunk.result.stopped:
        run.note_stop()
    if run.loop.exhausted:
        run.stop.append(f"{chunk.traces} steps are compiled: the kernel has no memory maps for more")


def speak(run: Session, _: Chunk) -> None:
    """Speak the fixed sentences with the averaged weights if they are due; not after a signal.

    A failure is reported in one line; the run continues.
    """
    if run.samples.empty or run.stop or not run.is_due(run.training.samples_every or run.training.steps):
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
        run.reporter.say(f"samples at step {run.step}: left out, the run goes on ({reason})")


def save(run: Session, _: Chunk) -> None:
    """Save a checkpoint if it is due, after a signal, and where the learning rate begins to decay."""
    training = run.training
    if run.stop or run.is_due(training.checkpoint_every) or run.step == decay_start(training):
        run.save()


class Validate:
    """Validates with the averaged weights, keeps the best, and watches which losses rise."""

    def __init__(self, run: Session, unread: UnreadClips) -> None:
        self._run, self._unread, self.overfitting = run, unread, Overfitting(run.metrics.held_out)
        self._trained: list[np.ndarray] = []
        """Metrics of the steps since the last validation."""

    def __call__(self, chunk: Chunk) -> None:
        """Validate if it is due."""
        self._trained.append(chunk.result.metrics)
        if self._run.is_due(self._run.training.validate_every):
            chunk.validation.update(self.run())

    def run(self) -> dict[str, float]:
        """Losses by name, the total as `loss`; empty, and nothing recorded, if a signal comes before the end."""
        run = self._run
        loop, title = run.validation, f"validation at step {run.step}"
        if loop.empty or run.stop:
            return {}
        with run.averaged_weights(), run.reading_cache(title):
            result = run.graph.run(loop.run)
        if result is None:
            run.note_stop()
            return {}
        losses, bad = result
        self._unread.report_validation(title, loop.unread)
        if bad:
            (clips,) = clip_names(run.plan.cache, run.plan.spec, "validation", bad[:1])
            run.reporter.say(
                f"{title}: {len(bad)} of {len(loop.batches)} batches not finite, left out; clips of the first: "
                f"{', '.join(clips)}"
            )
        total = run.metrics.total(losses)
        run.reporter.validation(run.step, losses, total, skipped=len(bad))
        rows, self._trained = self._trained, []
        if rows:  # none if a resumed run makes up for a validation
            columns = [run.metrics.step.index(name) for name in run.metrics.held_out]
            trained = mean_losses(run.metrics.held_out, np.concatenate(rows)[:, columns].tolist())
            for line in self.overfitting.note(run.step, losses, trained):
                run.reporter.say(f"overfitting: {line}; {REMEDY}")
        if run.best.note(run.step, run.metrics.score(losses)):
            run.save()
        return {"loss": total, **losses}
