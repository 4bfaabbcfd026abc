"""One training run from start-up to the last checkpoint, on the host: the loop, and its hooks between two calls."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import metadata

from rich.console import Console

from xtts.shared.errors import LockstepError, build_command
from xtts.trainer.engine.compiler import Compiler, about
from xtts.trainer.engine.dynamic_baseline import WARNING as DYNAMIC_WARNING
from xtts.trainer.engine.engine import TracedSteps
from xtts.trainer.engine.failures import RunEnded, compile_fix, explained
from xtts.trainer.engine.process_group import ALONE, ProcessGroup, join_group
from xtts.trainer.engine.schedule import decay_start, decaying_from, next_mark
from xtts.trainer.engine.train_step import UPDATE, training_step, validation_step
from xtts.trainer.reporting.bad_clips import SkippedUpdates, UnreadClips
from xtts.trainer.reporting.reporter import Chunk
from xtts.trainer.run.checkpoint import set_aside_newer
from xtts.trainer.run.hooks import Hook, Validate, save, speak, stop
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.session import Session
from xtts.trainer.run.signals import stop_requests
from xtts.trainer.system.device import device_name

_FIRST_STEP = "half a minute for size tiny on two cores"


class Trainer(Session):
    """Drives a run."""

    def __init__(
        self, plan: RunPlan, console: Console, compiler: Compiler, group: ProcessGroup = ALONE,
        steps: TracedSteps | None = None, hooks: Sequence[Hook] = (),
    ) -> None:  # fmt: skip
        """Raise `LockstepError` in every process if one was started with other settings or another cache."""
        _check_group(plan, group)
        super().__init__(plan, console, compiler, group, steps)
        self._compiler = compiler
        self._left_loop = math.nan
        clips = plan.cache, plan.spec, self.loop.buckets
        skipped = SkippedUpdates(*clips, self.training.max_bad_steps, self.reporter.say)
        unread = UnreadClips(*clips, plan.config.data.max_unreadable_fraction, self.reporter.say)
        self.validate = Validate(self, unread)
        own = hooks if group.is_rank_0 else ()
        self.hooks: list[Hook] = [
            partial(stop, self), self.reporter.keep, skipped, unread, partial(speak, self), self.validate,
            partial(save, self), *own,
        ]  # fmt: skip
        if group.is_rank_0:
            self._continue_folder()

    def _continue_folder(self) -> None:
        """Look back at the validations of a resumed run, and set aside what it leaves behind."""
        for _ in self.validate.overfitting.replay(self.plan.folder.metrics()):
            pass  # said before the run was stopped
        if self.shared_names:
            self.reporter.say(f"{self.plan.init_from}: reused embeddings of {self.shared_names}")
        for path in set_aside_newer(self.plan.folder.checkpoints, self.step) if self.plan.resume else []:
            self.reporter.say(f"set aside {path.name}: the run continues from step {self.step}")

    def compile(self) -> None:
        """Compile every signature; tracing has closed the set."""
        if not self.loop.closed_set:
            self.reporter.say(DYNAMIC_WARNING)
        prepared, last = self.graph.submit(self.loop.prepare) if self.loop.closed_set else None, 0.0
        for bucket in self.loop.closed_set:
            described = (
                f"bucket {bucket.number:02d}: {bucket.batch_size} clips of {bucket.stored.tokens} tokens, "
                f"{bucket.stored.frames} frames"
            )
            self.reporter.say(f"compiling {described}: {about(last, _FIRST_STEP)}")
            seconds = self._compiled(training_step(bucket.number))
            if seconds is None:
                return
            last = seconds
            self.reporter.say(f"compiled {described} in {seconds:.1f} s")
        if prepared:
            others = [*map(validation_step, self.steps.validation_steps), UPDATE]
            self.reporter.say(f"compiling {len(others)} steps of validation and update: less than a bucket each")
            for name in others:
                self._compiled(name)
            self.graph.result(prepared)
        self._prepare_samples()
        # A run that was stopped before a due validation does it now.
        due = self.is_due(self.training.validate_every)
        recorded = self.group.is_rank_0 and self.plan.folder.has_metrics("validation", self.step)
        self.validate.run(record=self.group.rank_0_says(due and not recorded))
        if not self.stop:
            self.reporter.say("training begins")
        self._left_loop = time.perf_counter()

    def _compiled(self, name: str) -> float | None:
        """Seconds of compiling a step; None after a signal."""
        with explained(f"compiling the {name}", compile_fix()):
            return None if self.stop else self.graph.result(self._compiler.step(name))

    def _prepare_samples(self) -> None:
        """Compile the samples; a new run also writes their recordings to TensorBoard."""
        if self.samples.empty or self.stop:
            return
        self.reporter.say(f"compiling samples: {self.samples.described}: less than a bucket")
        began = time.perf_counter()
        with explained("compiling the samples", compile_fix()):
            self.graph.run(self.samples.speak)
        self.reporter.say(f"compiled samples: {self.samples.described} in {time.perf_counter() - began:.1f} s")
        if self.plan.resume is None:
            self.reporter.recordings(self.samples)

    def run(self) -> list[str]:
        """Train to the last step, a signal or the last memory map; returns why, if not the first."""
        with self.graph, stop_requests() as self.signals:
            self.stop = [] if self.group.several_processes else self.signals
            self.compile()
            try:
                for chunk in self.chunks():
                    for hook in self.hooks:
                        hook(chunk)
            except RunEnded:
                self.save_whole_step()
                raise
            self.save()
            self.group.rank_0_says(False)  # the others wait for the last checkpoint
        return self.stop

    def chunks(self) -> Iterator[Chunk]:
        """Train: the steps of one host call after another, each up to the next task on the host."""
        while self.step < self.training.steps and not self.stop:
            if self.is_stale:
                self._begin_decay()
            else:
                yield self._advance()

    def _advance(self) -> Chunk:
        outside = time.perf_counter() - self._left_loop
        count = min(self.training.steps_per_call, next_mark(self.training, self.step) - self.step)
        with self.explained(f"steps after {self.step}"):
            call = self.graph.submit(self.loop.run, count)
            self.reporter.flush()  # the previous call, while this one runs
            result = self.graph.result(call)
        self._left_loop = time.perf_counter()
        first, self.step = self.step + 1, self.step + len(result.metrics)  # fewer than `count` after a signal
        return Chunk(
            first_step=first,
            result=result,
            outside_seconds=outside + result.wall - float(result.seconds.sum()),
            traces=self.steps.guard.count("training"),
            epoch=int(self.state.position.epoch.numpy()),
        )

    @property
    def is_stale(self) -> bool:
        """True if the last `training.patience` validations brought no improvement, and the decay is still to come."""
        patience = self.training.patience
        return patience is not None and self.best.since >= patience and self.step < decay_start(self.training)

    def _begin_decay(self) -> None:
        """Let the learning rate decay from here: the run ends earlier, and with what a decay gives."""
        self.training = decaying_from(self.training, self.step)
        config = self.plan.config.model_copy(update={"training": self.training})
        self.reporter.say(
            f"no better validation since step {self.best.step} (training.patience = {self.training.patience}): the "
            f"learning rate decays from here, and the run ends at step {self.training.steps}"
        )
        if self.group.is_rank_0:
            self.plan.folder.describe(config, self.plan.cache, self.plan.spec, recorded=self.plan.recorded_cache)
        self.reporter.end_at(self.training.steps)
        self.graph.run(self.loop.follow, self.training)
        self.save()


def _check_group(plan: RunPlan, group: ProcessGroup) -> None:
    """Raise `LockstepError` in every process if one was started otherwise than the others."""
    if group.size > 1 and not plan.spec.fixed_length:
        raise LockstepError(
            str(plan.cache), found=f"unpadded clips, which {group.size} devices cannot share",
            expected="shapes.pad_to_fixed_length: true",
            fix=f"{build_command(plan.cache)}, or train with --set training.strategy=single",
        )  # fmt: skip
    facts = {"version of lockstep-tts": metadata.version("lockstep-tts"), **plan.facts}
    group.check_same(facts, fix="start every worker with the same settings, cache and checkpoint")


def train(plan: RunPlan, console: Console, steps: TracedSteps | None = None, hooks: Sequence[Hook] = ()) -> bool:
    """Run to the last step, or until asked to stop (then False); always leaves a checkpoint.

    steps: as for `build_engine`, hooks: called after those of `hooks.py`.
    """
    group = join_group(plan.config.training)
    folder = plan.folder.exclusive() if group.is_rank_0 else nullcontext()
    named = plan.copy.named() if plan.copy else nullcontext()
    with plan.lock, folder, named, Compiler() as compiler:
        return _train(Trainer(plan, console, compiler, group, steps, hooks))


def _train(trainer: Trainer) -> bool:
    plan, folder, steps = trainer.plan, trainer.plan.folder.path, trainer.training.steps
    trainer.reporter.say(
        f"{folder}: model {plan.config.model.size}, {trainer.state.model.parameter_count:,} parameters, "
        f"{plan.spec.statistics.clips} clips in {trainer.shapes} shapes; step {trainer.step} of {steps}"
    )
    trainer.reporter.say(f"device: {device_name()}{trainer.group.described}")
    try:
        stop = trainer.run()
    finally:
        trainer.reporter.close()
    if stop:
        trainer.reporter.say(f"{stop[0]}: saved step {trainer.step}; continue with: xtts-train --resume {folder}")
    return not stop
