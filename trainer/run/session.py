"""A run as its hooks see it: engine, progress, reporter, reasons to stop, and saving."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict

from rich.console import Console

from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.engine.compiler import Compiler
from xtts.trainer.engine.engine import TracedSteps, build_engine
from xtts.trainer.engine.failures import explained
from xtts.trainer.engine.metrics import metrics_of
from xtts.trainer.engine.process_group import ProcessGroup
from xtts.trainer.engine.schedule import decay_start
from xtts.trainer.engine.train_state import TrainState
from xtts.trainer.evaluation.voice_description import voice_of
from xtts.trainer.model.vocoder import Vocoder
from xtts.trainer.reporting.reporter import Reporter, SilentReporter
from xtts.trainer.reporting.samples import SAMPLES, Samples
from xtts.trainer.reporting.spoken_samples import SpokenSamples
from xtts.trainer.reporting.vocoder_samples import VocoderSamples
from xtts.trainer.run.best_validation import Best
from xtts.trainer.run.checkpoint import (
    identity_of,
    load_arrays,
    prune_checkpoints,
    read_meta,
    save_checkpoint,
    schedule_of,
)
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.signals import GraphThread
from xtts.trainer.run.stored_model import open_model, shared_names, take_rows


class Session:
    """The state of a run on the host.

    The graph runs in its own thread; meanwhile this one reports the previous call and handles signals.
    """

    def __init__(
        self, plan: RunPlan, console: Console, compiler: Compiler, group: ProcessGroup, steps: TracedSteps | None
    ) -> None:
        self.plan, self.training, self.group, self.compiler = plan, plan.config.training, group, compiler
        self.metrics = metrics_of(plan.config)
        self.shared_names = ""
        """Embeddings reused from another run's weights, in words; empty if all or none."""
        buckets = training_buckets(plan.cache, plan.spec, plan.config)
        self.shapes = len(buckets)
        self.engine = build_engine(
            buckets, plan.config, restore=self._restore, compiler=compiler, group=group, steps=steps
        )
        self.state, self.steps = self.engine.state, self.engine.steps
        self.loop, self.validation = self.engine.loop, self.engine.validation
        if group.several_processes:
            fix = "give every worker the same checkpoint: a run folder that all of them see, or a copy of it"
            group.check_same({"restored state": self.state.digest()}, fix=fix)
        self.best = Best()
        if plan.resume:
            progress = read_meta(plan.resume)["progress"]
            self.best = Best(**progress["best_validation"])
            if progress["schedule"] != schedule_of(self.training):
                self.best.since = 0  # patience starts again if more steps are asked for
        sampling = self.training if group.is_rank_0 else self.training.model_copy(update={"samples_every": None})
        model, inputs = self.state.model, (plan.cache, plan.spec, sampling)
        self.samples: Samples = (
            VocoderSamples(model, *inputs) if isinstance(model, Vocoder) else SpokenSamples(model, *inputs)
        )
        if not self.samples.empty:
            compiler.submit(SAMPLES, self.samples.speak)
        self.step = int(self.state.step.numpy())
        self.reporter = self._reporter(console)
        self.stop: list[str] = []
        """Reasons to end the run before its last step, known to all processes; empty while it goes on."""
        self.signals = self.stop
        """Names of the signals that this process received; for a single process the same list as `stop`."""
        self.graph = GraphThread(self._pass_on_signals)
        self._saved_step = self.step if plan.resume else -1

    def _restore(self, state: TrainState) -> None:
        if self.plan.resume:
            state.restore(load_arrays(self.plan.resume))
        elif self.plan.init_from:
            stored = open_model(self.plan.init_from)
            if isinstance(state.model, Vocoder):
                return state.restore_weights(stored.averages())
            before, now = stored.voice, voice_of(self.plan.cache, self.plan.spec)
            initial = {weight.path: weight.numpy() for weight in state.model.trainable_variables}
            state.restore_weights(take_rows(stored.averages(), initial, before, now))
            self.shared_names = shared_names(before, now)

    def _reporter(self, console: Console) -> Reporter:
        """The reporter of this process; that of rank 0 opens the run folder."""
        if not self.group.is_rank_0:
            return SilentReporter()
        plan, training = self.plan, self.training
        plan.folder.write_run_files(plan.config, plan.cache, plan.spec, recorded=plan.recorded_cache)
        plan.folder.forget_after(self.step if plan.resume else -1)
        return Reporter(
            plan.folder, console, self.metrics, total_steps=training.steps, log_every=training.log_every,
            buckets=len(self.loop.closed_set),
        )  # fmt: skip

    def _pass_on_signals(self) -> None:
        if self.signals:
            self.loop.stop.assign(True)

    def note_stop(self) -> None:
        """Record a stop that all processes know of."""
        if not self.stop:
            self.stop.append(self.signals[0] if self.signals else "a signal to another worker")

    def is_due(self, every: int) -> bool:
        """True at multiples of an interval and at the last step."""
        return self.step % every == 0 or self.step == self.training.steps

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """The context in which the model has its averaged weights; it restores the weights, also after an error."""
        self.engine.exchange_averages()
        try:
            yield
        finally:
            self.engine.exchange_averages()

    def reading_cache(self, task: str) -> AbstractContextManager[None]:
        """The context of a graph call that reads the cache; its failures are `explained`."""
        resume = f"xtts-train --resume {self.plan.folder.path}"
        fix = f"run xtts-precompute verify --cache {self.plan.named_cache}, then {resume}"
        return explained(task, fix, resume=resume)

    def save(self) -> None:
        """Save a checkpoint of this step, unless there is one."""
        self.reporter.flush()
        if self._saved_step == self.step or not self.group.is_rank_0:
            return
        folder, training = self.plan.folder.checkpoints, self.training
        identity = identity_of(self.plan.config, self.plan.spec)
        progress = {
            "best_validation": asdict(self.best), "schedule": schedule_of(training),
            "asked_steps": self.plan.asked_steps or self.plan.config.training.steps,
        }  # fmt: skip
        save_checkpoint(folder, self.state.arrays(), step=self.step, identity=identity, progress=progress)
        beside = {decay_start(training), self.best.step or 0}  # a longer run continues from before the decay
        prune_checkpoints(folder, training.keep_checkpoints, beside=beside)
        self._saved_step = self.step

    def save_whole_step(self) -> None:
        """Save the last whole step of a run that failed; nothing if there is none, or it cannot be known."""
        if (step := self.loop.last_whole_step()) and self.group.is_rank_0:
            self.step = step
            self.save()
            self.reporter.say(f"saved step {self.step}")
