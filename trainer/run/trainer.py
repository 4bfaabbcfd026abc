"""One training run from start-up to the last checkpoint, on the host: the loop, and its hooks between two calls."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import metadata
from itertools import islice

from rich.console import Console

from xtts.shared.errors import LockstepError, build_command
from xtts.trainer.engine.compiler import Compiler
from xtts.trainer.engine.dynamic_baseline import WARNING as DYNAMIC_WARNING
from xtts.trainer.engine.engine import TracedSteps
from xtts.trainer.engine.failures import RunEnded, compile_fix, explained
from xtts.trainer.engine.process_group import ALONE, ProcessGroup, join_group
from xtts.trainer.engine.schedule import decay_start, decaying_from, next_mark
from xtts.trainer.engine.train_step import UPDATE, training_step, validation_step
from xtts.trainer.reporting.bad_clips import SkippedUpdates, UnreadClips
from xtts.trainer.reporting.reporter import Chunk
from xtts.trainer.reporting.samples import SAMPLES
from xtts.trainer.run.checkpoint import set_aside_newer
from xtts.trainer.run.hooks import Hook, Validate, save, speak, stop
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.session import Session
from xtts.trainer.run.signals import stop_requests
from xtts.trainer.system.device import device_name, suited_to, weakest_card

_LOOK_AHEAD = 8
"""Draws for each bucket that decide in which order they are compiled."""


class Trainer(Session):
    """Drives a run."""

    def __init__(
        self, plan: RunPlan, console: Console, compiler: Compiler, group: ProcessGroup = ALONE,
        steps: TracedSteps | None = None, hooks: Sequence[Hook] = (),
    ) -> None:  # fmt: skip
        """Raise `LockstepError` in every process if one was started with other settings or another cache."""
        _check_group(plan, group)
        super().__init__(plan, console, compiler, group, steps)
        self._left_loop = math.nan
        self._compiling: dict[str, str] = {}
        """The buckets and samples that are not compiled yet, described, by the name of the step."""
        clips = plan.cache, plan.spec, self.loop.buckets
        skipped = SkippedUpdates(*clips, self.training.max_bad_steps, self.reporter.say)
        unread = UnreadClips(*clips, plan.config.data.max_unreadable_fraction, self.reporter.say)
        self.validate = Validate(self, unread)
        own = hooks if group.is_rank_0 else ()
        self.hooks: list[Hook] = [
            partial(stop, self), self.reporter.keep, skipped, unread, self.validate, partial(save, self),
            partial(speak, self), *own,
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
        """Wait for the steps that come first; the others are compiled while they run. Tracing has closed the set."""
        due = self.step > 0 and self.is_due(self.training.validate_every)
        recorded = self.group.is_rank_0 and self.plan.folder.has_metrics("validation", self.step)
        prepared = self._begin_compiling(validate=due and not recorded)
        if self.plan.resume is None and not self.samples.empty:
            self.reporter.recordings(self.samples)
        self.graph.result(prepared)
        # A run that was stopped before a due validation does it now.
        if self.group.rank_0_says(due and not recorded):
            self.validate.run()
        if self._next_count() and not self.stop:
            left = ", ".join(text.partition(":")[0] for text in self._compiling.values())
            self.reporter.say(f"training begins{left and f', while these are compiled: {left}'}")
        self._left_loop = time.perf_counter()

    def _begin_compiling(self, *, validate: bool) -> Future[None]:
        """Put the steps in the order in which they are needed, and wait for validation's; returns the loop's trace.

        Several processes, whose calls must be of the same steps, wait for all.
        """
        buckets, validation = self.loop.closed_set, [*map(validation_step, self.steps.validation_steps)]
        if not buckets:
            self.reporter.say(DYNAMIC_WARNING)
            return self.graph.submit(lambda: None)
        self._compiling = {
            training_step(bucket.number): f"bucket {bucket.number:02d}: {bucket.described}" for bucket in buckets
        }
        if not self.samples.empty:
            self._compiling[SAMPLES] = f"samples: {self.samples.described}"
        self.reporter.say(
            f"compiling {len(buckets)} buckets and {len(validation) + 1} steps of validation and update: about half a "
            "minute a bucket for size tiny on two cores, seconds if it was compiled before"
        )
        first = validation if validate else []
        coming = [training_step(bucket) for bucket in islice(self.loop.coming(), _LOOK_AHEAD * len(buckets))]
        self.compiler.prefer([*first, *coming])
        prepared = self.graph.submit(self.loop.prepare)
        self._wait_for([UPDATE, *validation, *self._compiling] if self.group.several_processes else [UPDATE, *first])
        return prepared

    def _wait_for(self, names: Iterable[str]) -> None:
        """Wait until these steps are compiled, or for a signal, and say what has been compiled by then."""
        for name in names:
            with explained(f"compiling the {name}", compile_fix()):
                if not self.stop:
                    self.graph.result(self.compiler.step(name))
        for name, described in [*self._compiling.items()]:
            if self.compiler.step(name).done():
                with explained(f"compiling the {name}", compile_fix()):
                    seconds = self.compiler.step(name).result()
                self.reporter.say(f"compiled {described} in {seconds:.1f} s")
                del self._compiling[name]

    def _next_count(self) -> int:
        """Steps of the next call: up to the next task on the host; while steps compile, those that are; at least one.

        It waits for that one, or for a signal.
        """
        count = min(self.training.steps_per_call, next_mark(self.training, self.step) - self.step)
        if not self._compiling:
            return count
        self.reporter.flush()  # a compilation takes long: the steps before it are seen now
        coming = map(training_step, self.loop.coming())
        self._wait_for([next(coming)])
        if not self._compiling.keys() - {SAMPLES}:
            return count
        most = min(count, _LOOK_AHEAD * len(self.loop.closed_set))
        others = enumerate(islice(coming, most - 1), start=1)
        return next((ready for ready, name in others if name in self._compiling), most)

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
                continue
            count = self._next_count()
            if not self.stop:
                yield self._advance(count)

    def _advance(self, count: int) -> Chunk:
        outside = time.perf_counter() - self._left_loop
        with self.reading_cache(f"steps after {self.step}"):
            call = self.graph.submit(self.loop.run, count)
            self.reporter.flush()  # the previous call, while this one runs
            result = self.graph.result(call)
        self._left_loop = time.perf_counter()
        first, self.step = self.step + 1, self.step + len(result.metrics)  # fewer than `count` after a signal
        return Chunk(
            first_step=first,
            result=result,
            metrics=self.metrics,
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
            self.plan.folder.write_run_files(config, self.plan.cache, self.plan.spec, recorded=self.plan.recorded_cache)
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
    config = suited_to(weakest_card(), plan.config, partial(console.print, highlight=False, soft_wrap=True))
    plan = replace(plan, config=config)  # which the run folder records: a run goes on as it began
    folder = plan.folder.exclusive() if group.is_rank_0 else nullcontext()
    named = plan.copy.url_in_errors() if plan.copy else nullcontext()
    with plan.lock, folder, named, Compiler() as compiler:
        return _train(Trainer(plan, console, compiler, group, steps, hooks))


def _train(trainer: Trainer) -> bool:
    plan, folder, steps = trainer.plan, trainer.plan.folder.path, trainer.training.steps
    trainer.reporter.say(
        f"{folder}: model {plan.config.model_name}, {trainer.state.model.parameter_count:,} parameters, "
        f"{plan.spec.statistics.clips} clips in {trainer.shapes} shapes; step {trainer.step} of {steps}"
    )
    trainer.reporter.say(f"device: {device_name()}{trainer.group.described}")
    try:
        stop = trainer.run()
    finally:
        trainer.reporter.close()
    if stop:
        trainer.reporter.say(
            f"{stop[0]}: saved step {trainer.step}; continue with: xtts-train --resume {folder}, or export its voice "
            f"with: xtts-train --finish {folder}"
        )
    return not stop
