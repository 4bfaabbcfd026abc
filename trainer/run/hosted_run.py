"""A run on the host, whatever runs its steps: progress, checkpoints and stops, for the hooks between its calls."""

import math
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from xtts.shared.config import TrainingConfig
from xtts.trainer.loop.chunk import Chunk, StoredBatch
from xtts.trainer.loop.failures import RunEnded, explained
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.schedule import decay_start, decaying_from, next_mark
from xtts.trainer.models.samples import Samples
from xtts.trainer.run.reporter import Reporter
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.signals import GraphThread, stop_requests
from xtts.trainer.stored.checkpoint import identity_of, prune_checkpoints, read_meta, save_checkpoint, schedule_of

if TYPE_CHECKING:
    from xtts.trainer.loop.program_loop import ProgramLoop, ProgramValidation
    from xtts.trainer.loop.training_loop import TrainingLoop
    from xtts.trainer.loop.validation_loop import ValidationLoop


@dataclass
class Best:
    """The best validation so far, as a checkpoint stores it."""

    step: int | None = None
    loss: float | None = None
    """None before the first validation."""
    since: int = 0
    """Validations since then."""

    def note(self, step: int, loss: float) -> bool:
        """Record a validation; True if it is the best so far."""
        if loss < (math.inf if self.loss is None else self.loss):
            self.step, self.loss, self.since = step, loss, 0
            return True
        self.since += 1
        return False


class HostedRun(ABC):
    """The state of a run. Inside its `with` block it handles signals; leaving it saves what a failed run can save.

    Its calls run in a thread; meanwhile this one reports the previous call.
    """

    metrics: Metrics
    reporter: Reporter
    loop: "TrainingLoop | ProgramLoop"
    validation: "ValidationLoop | ProgramValidation"
    samples: Samples

    def __init__(self, plan: RunPlan) -> None:
        self.plan, self.training = plan, plan.config.training
        self.stop_reason = ""
        """Reason for stopping early, known to all processes; empty while the run continues."""
        self.requests: list[str] = []
        """Reasons to stop that this process has received, such as the name of a signal."""
        self.best, self.step = self._best_so_far(), plan.steps_done
        self._saved_step = self.step if plan.resume else -1
        self._left_loop = math.nan
        """`time.perf_counter()` at the end of the last host call."""
        self.graph = GraphThread(self._pass_on_requests)
        self._stack = ExitStack()

    def _best_so_far(self) -> Best:
        if not self.plan.resume:
            return Best()
        progress = read_meta(self.plan.resume)["progress"]
        best = Best(**progress["best_validation"])
        if progress["schedule"] != schedule_of(self.training):
            best.since = 0  # patience starts again if more steps are requested
        return best

    @abstractmethod
    def compile(self) -> None:
        """Compile every step, unless a signal comes."""

    def advance(self) -> Chunk:
        """Train up to the next task on the host, in one host call; the reporter keeps its steps."""
        count = min(self.training.steps_per_call, next_mark(self.training, self.step) - self.step)
        outside = time.perf_counter() - self._left_loop
        with self.reading_cache(f"steps after {self.step}"):
            call = self.graph.submit(self.loop.run, count)
            self.reporter.flush()  # the previous call, while this one runs
            result = self.graph.result(call)
        self._left_loop = time.perf_counter()
        first, self.step = self.step + 1, self.step + len(result.metrics)  # fewer than `count` after a signal
        if result.stopped:
            self.note_stop()
        chunk = Chunk(
            first_step=first, result=result, metrics=self.metrics, traces=self.loop.traces, epoch=self.loop.epoch,
            outside_seconds=outside + result.wall - float(result.seconds.sum()),
        )
        self.reporter.keep(chunk)
        return chunk

    @abstractmethod
    def averaged_weights(self) -> AbstractContextManager[None]:
        """The context in which the model has its averaged weights; it restores the weights, also after an error."""

    def batch_of(self, chunk: Chunk, i: int) -> StoredBatch:
        """The clips of one step of a call."""
        return self.loop.batch(int(chunk.result.buckets[i]), int(chunk.result.offsets[i]))

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint of this step."""

    @abstractmethod
    def finish(self) -> None:
        """Save the last step, and report how to go on."""

    def _follow(self, training: TrainingConfig) -> None:
        """Train on with another schedule."""
        self.graph.run(self.loop.follow, training)

    def agree(self, flag: bool) -> bool:
        """What rank 0 says, in every process."""
        return flag

    def __enter__(self) -> Self:
        self._stack.callback(self.reporter.close)
        self._stack.enter_context(self.graph)
        self.requests = self._stack.enter_context(stop_requests())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if isinstance(error, RunEnded) and (step := self.loop.last_whole_step()) and self.plan.is_rank_0:
                self.step = step
                self.save()
                self.reporter.say(f"saved step {step}")

    def _pass_on_requests(self) -> None:
        if self.requests:
            self.loop.stop()
            self.note_stop()

    def note_stop(self) -> None:
        """Record a stop that all processes know of."""
        self.stop_reason = self.stop_reason or next(iter(self.requests), "a signal to another worker")

    @property
    def goes_on(self) -> bool:
        """Whether there is another step to train."""
        return self.step < self.training.steps and not self.stop_reason

    def is_due(self, every: int) -> bool:
        """Whether the step is a multiple of an interval, or the last."""
        return self.step % every == 0 or self.step == self.training.steps

    @property
    def is_stale(self) -> bool:
        """Whether the last `training.patience` validations brought no improvement, and the decay is still to come."""
        patience = self.training.patience
        return patience is not None and self.best.since >= patience and self.step < decay_start(self.training)

    def begin_decay(self) -> None:
        """Start the decay of the learning rate now, and end early."""
        self.training = decaying_from(self.training, self.step)
        self.reporter.say(
            f"no better validation since step {self.best.step} (training.patience = {self.training.patience}): the "
            f"learning rate now decays, and the run ends at step {self.training.steps}"
        )
        self.reporter.total_steps = self.training.steps
        self._follow(self.training)
        self.save()

    def reading_cache(self, task: str) -> AbstractContextManager[None]:
        """The context of a call that reads the cache; its failures are `explained`."""
        resume = f"xtts-train --resume {self.plan.folder.path}"
        fix = f"run xtts-precompute verify --cache {self.plan.named_cache}, then {resume}"
        return explained(task, fix, resume=resume)

    def save(self) -> None:
        """Save a checkpoint of this step, unless there is one."""
        self.reporter.flush()
        if self._saved_step == self.step or not self.plan.is_rank_0:
            return
        folder, training = self.plan.folder.checkpoints, self.training
        identity = identity_of(self.plan.config, self.plan.spec)
        progress = {
            "best_validation": asdict(self.best), "schedule": schedule_of(training),
            "asked_steps": self.plan.asked_steps or self.plan.config.training.steps,
        }
        save_checkpoint(folder, self._arrays(), step=self.step, identity=identity, progress=progress)
        beside = {decay_start(training), self.best.step or 0}  # a longer run continues from before the decay
        prune_checkpoints(folder, training.keep_checkpoints, beside=beside)
        self._saved_step = self.step
