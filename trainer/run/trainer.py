"""One training run from start-up to the last checkpoint, on the host."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext

import numpy as np
from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.engine.compiler import Compiled, Compiler
from xtts.trainer.engine.devices import Devices, open_devices
from xtts.trainer.engine.dynamic_baseline import WARNING as DYNAMIC_WARNING
from xtts.trainer.engine.engine import TracedSteps, build_engine
from xtts.trainer.engine.failures import compile_fix, explained
from xtts.trainer.engine.metrics import LOSSES, TRAIN_METRICS
from xtts.trainer.engine.schedule import decay_start, decaying_from, next_mark
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.engine.train_step import UPDATE, loss_weights, training_step, validation_step
from xtts.trainer.evaluation.voice_description import voice_of
from xtts.trainer.reporting.not_finite import SkippedUpdates, clip_names
from xtts.trainer.reporting.reporter import StepRows
from xtts.trainer.reporting.spoken_samples import Samples
from xtts.trainer.reporting.unread_clips import UnreadClips
from xtts.trainer.run.best_validation import REMEDY, Best, Overfitting, mean_losses
from xtts.trainer.run.checkpoint import (
    describe,
    load_arrays,
    prune_checkpoints,
    read_meta,
    save_checkpoint,
    schedule_of,
    set_aside_newer,
)
from xtts.trainer.run.initial_weights import shared_names, take_rows
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.signals import GraphThread, stop_requests
from xtts.trainer.run.stored_model import open_model
from xtts.trainer.run.team import Team
from xtts.trainer.system.device import device_name


class Trainer:
    """Drives a run.

    The graph runs in its own thread; meanwhile this one reports the previous call and handles signals.
    """

    def __init__(
        self, plan: RunPlan, console: Console, compiler: Compiler, devices: Devices | None = None,
        steps: TracedSteps | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.training, self._compiler = plan, plan.config.training, compiler
        self.team = Team(plan, devices)
        self._shared_names = ""
        buckets = training_buckets(plan.cache, plan.spec, plan.config)
        self.shapes = len(buckets)
        engine = build_engine(
            buckets, plan.config, restore=self._restore, compiler=compiler, devices=devices, steps=steps
        )
        self.team.check_state(engine.state)
        self.state, self.steps, self.loop, self.validation = engine.state, engine.steps, engine.loop, engine.validation
        self._exchange = engine.exchange_averages
        self.identity = describe(plan.config, plan.spec)
        self.best, self._overfitting = Best(), Overfitting()
        self._trained: list[np.ndarray] = []
        """Metrics of the steps since the last validation."""
        if plan.resume:
            progress = read_meta(plan.resume)["progress"]
            self.best = Best.from_json(progress["best_validation"])
            if progress["schedule"] != schedule_of(self.training):
                self.best.since = 0  # patience begins anew where more steps are asked for
        self.samples = Samples(self.state.model, plan.cache, plan.spec, self.team.sampling(self.training))
        self.step = int(self.state.step.numpy())
        if self.team.chief:
            self._prepare_folder(console)
        self.reporter = self.team.reporter(console, buckets=len(self.loop.closed_set))
        self.saved_step = self.step if plan.resume else -1
        self.stop: list[str] = []
        """Names of received stop signals; on several processes one that all of them know of."""
        self._signals = self.stop
        self._graph = GraphThread(self._pass_on_signals)
        self._unreported: StepRows | None = None
        self._left_loop = math.nan
        self._unread = UnreadClips(plan.cache, plan.spec, self.loop.buckets, plan.config.data.max_unreadable_fraction)
        skipped = SkippedUpdates(plan.cache, plan.spec, self.loop.buckets, self.training.max_bad_steps)
        self._watches = (skipped, self._unread)

    def _restore(self, state: TrainState) -> None:
        if self.plan.resume:
            state.restore(load_arrays(self.plan.resume))
        elif self.plan.init_from:
            stored = open_model(self.plan.init_from)
            before, now = stored.voice, voice_of(self.plan.cache, self.plan.spec)
            initial = {weight.path: weight.numpy() for weight in state.model.trainable_variables}
            state.restore_weights(take_rows(stored.averages(), initial, before, now))
            self._shared_names = shared_names(before, now)

    def _prepare_folder(self, console: Console) -> None:
        folder = self.plan.folder
        folder.describe(self.plan.config, self.plan.cache, self.plan.spec, recorded=self.plan.recorded_cache)
        folder.forget_after(self.step if self.plan.resume else -1)
        for _ in self._overfitting.replay(folder.metrics()):
            pass  # said before the run was stopped
        if self._shared_names:
            console.print(f"{self.plan.init_from}: reused embeddings of {self._shared_names}", highlight=False)
        for path in set_aside_newer(folder.checkpoints, self.step) if self.plan.resume else []:
            console.print(f"set aside {path.name}: the run continues from step {self.step}", highlight=False)

    def compile(self) -> None:
        """Compile every signature; tracing has closed the set."""
        if not self.loop.closed_set:
            self.reporter.say(DYNAMIC_WARNING)
        prepared = self._graph.submit(self.loop.prepare) if self.loop.closed_set else None
        for bucket in self.loop.closed_set:
            done = self._compiled(training_step(bucket.number))
            if done is None:
                return
            grown = f", memory +{done.grown >> 20} MiB" if done.grown >> 20 else ""
            self.reporter.say(
                f"compiled bucket {bucket.number:02d}: {bucket.batch_size} clips of {bucket.stored.tokens} tokens, "
                f"{bucket.stored.frames} frames "
                f"in {done.seconds:.1f} s{grown}"
            )
        if prepared:
            for name in (*map(validation_step, self.steps.validation_steps), UPDATE):
                self._compiled(name)
            self._graph.result(prepared)
        self._prepare_samples()
        # A run that was stopped before a due validation does it now.
        due = self._due(self.training.validate_every)
        recorded = self.team.chief and self.plan.folder.has_metrics("validation", self.step)
        self.validate(record=self.team.chief_says(due and not recorded))
        if not self.stop:
            self.reporter.say("training begins")
        self._left_loop = time.perf_counter()

    def _compiled(self, name: str) -> Compiled | None:
        """Cost of compiling a step; None after a signal."""
        with explained(f"compiling the {name}", compile_fix()):
            return None if self.stop else self._graph.result(self._compiler.step(name))

    def _prepare_samples(self) -> None:
        """Compile the samples; a new run also writes their recordings to TensorBoard."""
        if self.samples.empty or self.stop:
            return
        began = time.perf_counter()
        with explained("compiling the samples", compile_fix()):
            self._graph.run(self.samples.speak)
        self.reporter.say(f"compiled samples: {self.samples.described} in {time.perf_counter() - began:.1f} s")
        if self.plan.resume is None:
            self.reporter.recordings(self.samples)

    @property
    def _data_fix(self) -> str:
        cache = self.plan.named_cache
        return f"run xtts-precompute verify --cache {cache}, then xtts-train --resume {self.plan.folder.path}"

    def _pass_on_signals(self) -> None:
        if self._signals:
            self.loop.stop.assign(True)

    def _note_stop(self) -> None:
        """Record a stop that all processes know of by now."""
        if not self.stop:
            self.stop.append(self._signals[0] if self._signals else "a signal to another worker")

    def validate(self, *, record: bool = True) -> None:
        """Validate with the averaged weights; records nothing if a signal comes before the end."""
        if self.validation.empty or self.stop:
            return
        self.report()
        self._exchange()
        with explained(f"validation at step {self.step}", self._data_fix):
            found = self._graph.run(self.validation.run)
        self._exchange()
        if found is None:
            self._note_stop()
            return
        losses, bad = found
        for line in self._unread.held_out(f"validation at step {self.step}", self.validation.unread):
            self.reporter.say(line)
        if bad:
            (clips,) = clip_names(self.plan.cache, self.plan.spec, "validation", bad[:1])
            self.reporter.say(
                f"validation at step {self.step}: {len(bad)} of {len(self.validation.batches)} batches not finite, "
                f"left out; clips of the first: {', '.join(clips)}"
            )
        total = sum(weight * losses[name] for name, weight in zip(LOSSES, loss_weights(self.training), strict=True))
        if record:
            self.reporter.validation(self.step, losses, total, skipped=len(bad))
            for line in self._rising(losses):
                self.reporter.say(f"overfitting: {line}; {REMEDY}")
            if self.best.note(self.step, total) and self.step:
                self.save()

    def _rising(self, held_out: Mapping[str, float]) -> Iterator[str]:
        """`Overfitting.note` of the losses of this model, once it has trained."""
        rows, self._trained = self._trained, []
        if rows:
            columns = [TRAIN_METRICS.index(name) for name in LOSSES]
            means = mean_losses(np.concatenate(rows)[:, columns].tolist())
            yield from self._overfitting.note(self.step, {name: held_out[name] for name in LOSSES}, means)

    def speak_samples(self) -> None:
        """Speak the fixed sentences with the averaged weights and report them; nothing after a signal."""
        if self.samples.empty or self.stop:
            return
        self.report()
        began = time.perf_counter()
        self._exchange()
        spoken = self._graph.run(self.samples.speak)
        self._exchange()
        self.reporter.samples(self.step, self.samples, spoken, began=began)

    def advance(self) -> None:
        """One host call: all steps up to the next task on the host."""
        training = self.training
        outside = time.perf_counter() - self._left_loop
        count = min(training.steps_per_call, next_mark(training, self.step) - self.step)
        with explained(f"steps after {self.step}", self._data_fix):
            call = self._graph.submit(self.loop.run, count)
            self.report()  # the previous call, while this one runs
            result = self._graph.result(call)
        self._left_loop = time.perf_counter()
        rows = StepRows(
            first_step=self.step + 1,
            result=result,
            outside_seconds=outside + result.wall - float(result.seconds.sum()),
            traces=self.steps.guard.count("training"),
            epoch=int(self.state.position.epoch.numpy()),
        )
        self.step += len(result.metrics)  # fewer than `count` after a signal, and in the dynamic baseline
        if self.team.stopped(self.loop):
            self._note_stop()
        self._unreported = rows
        self._trained.append(result.metrics)
        self._watch_numbers(rows)

    def report(self) -> None:
        """Report the steps of the last call, unless already done."""
        rows, self._unreported = self._unreported, None
        if rows and len(rows.result.metrics):
            self.reporter.steps(rows)

    def _watch_numbers(self, rows: StepRows) -> None:
        try:
            for watch in self._watches:
                for line in watch.lines(rows):
                    self.reporter.say(line)
        except LockstepError:
            self.save()
            raise

    def run(self) -> list[str]:
        """Train to the last step, a signal or the last memory map; returns why, if not the first."""
        with self._graph, stop_requests() as self._signals:
            self.stop = [] if self.team.several else self._signals
            self.compile()
            while self.step < self.training.steps and not (self.stop or self.loop.exhausted):
                if self.stale:
                    self.begin_decay()
                    continue
                training = self.training
                self.advance()
                if self._due(training.samples_every or training.steps):
                    self.speak_samples()
                if self._due(training.validate_every):
                    self.validate()
                if self.stop or self._due(training.checkpoint_every) or self.step == decay_start(training):
                    self.save()
            self.save()
            self.team.chief_says(False)  # the others wait for the last checkpoint
        if self.loop.exhausted:
            self.stop.append(
                f"{self.steps.guard.count('training')} steps are compiled: the kernel has no memory maps for more"
            )
        return self.stop

    def _due(self, every: int) -> bool:
        """True at multiples of an interval and at the last step."""
        return self.step % every == 0 or self.step == self.training.steps

    @property
    def stale(self) -> bool:
        """True if the last `training.patience` validations brought no improvement, and the decay is still to come."""
        patience = self.training.patience
        return patience is not None and self.best.since >= patience and self.step < decay_start(self.training)

    def begin_decay(self) -> None:
        """Let the learning rate decay from here: the run ends earlier, and with what a decay gives."""
        self.report()
        self.training = decaying_from(self.training, self.step)
        config = self.plan.config.model_copy(update={"training": self.training})
        self.reporter.say(
            f"no better validation since step {self.best.step} (training.patience = {self.training.patience}): the "
            f"learning rate decays from here, and the run ends at step {self.training.steps}"
        )
        if self.team.chief:
            self.plan.folder.describe(config, self.plan.cache, self.plan.spec, recorded=self.plan.recorded_cache)
        self.reporter.end_at(self.training.steps)
        self._graph.run(self.loop.follow, self.training)
        self.save()

    def save(self) -> None:
        """Save a checkpoint of this step, unless there is one."""
        self.report()
        if self.saved_step == self.step or not self.team.chief:
            return
        folder, training = self.plan.folder.checkpoints, self.training
        progress = {"best_validation": self.best.as_json(), "schedule": schedule_of(training)}
        progress["asked_steps"] = self.plan.asked_steps or self.plan.config.training.steps
        save_checkpoint(folder, self.state.arrays(), step=self.step, identity=self.identity, progress=progress)
        beside = {decay_start(training), self.best.step or 0}  # a longer run continues from before the decay
        prune_checkpoints(folder, training.keep_checkpoints, beside=beside)
        self.saved_step = self.step


def train(plan: RunPlan, console: Console, steps: TracedSteps | None = None) -> bool:
    """Run to the last step, or until asked to stop (then False); always leaves a checkpoint.

    steps: as for `build_engine`.
    """
    devices = open_devices(plan.config.training)
    folder = plan.folder.exclusive() if devices is None or devices.chief else nullcontext()
    named = plan.copy.named() if plan.copy else nullcontext()
    with plan.lock, folder, named, Compiler() as compiler:
        return _train(Trainer(plan, console, compiler, devices, steps))


def _train(trainer: Trainer) -> bool:
    plan = trainer.plan
    training, folder = plan.config.training, plan.folder.path
    model = trainer.state.model
    trainer.reporter.say(
        f"{folder}: model {plan.config.model.size}, {model.parameter_count:,} parameters, "
        f"{plan.spec.statistics.clips} clips in {trainer.shapes} shapes; step {trainer.step} of {training.steps}"
    )
    trainer.reporter.say(f"device: {device_name()}{trainer.team.described}")
    try:
        stop = trainer.run()
    finally:
        trainer.reporter.close()
    if stop:
        trainer.reporter.say(f"{stop[0]}: saved step {trainer.step}; continue with: xtts-train --resume {folder}")
    return not stop
