"""A training run on the host: its loops and progress, and what the loop of `train` and its hooks do with them."""

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict
from importlib import metadata
from types import TracebackType
from typing import Self

from rich.console import Console

from xtts.shared.config import Config
from xtts.shared.errors import LockstepError, build_command, counted_noun
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.loop.chunk import Chunk
from xtts.trainer.loop.compiler import Compiler
from xtts.trainer.loop.failures import RunEnded, compile_fix, explained
from xtts.trainer.loop.process_group import ALONE, ProcessGroup
from xtts.trainer.loop.replicas import build_loops
from xtts.trainer.loop.schedule import decay_start, decaying_from, next_mark
from xtts.trainer.loop.step_names import training_step
from xtts.trainer.loop.train_state import TrainState
from xtts.trainer.reporting.reporter import Reporter, SilentReporter
from xtts.trainer.reporting.samples import SAMPLES, Samples
from xtts.trainer.reporting.tensorboard import TensorBoard
from xtts.trainer.run.best_validation import Best
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.signals import GraphThread, stop_requests
from xtts.trainer.stored.checkpoint import (
    identity_of,
    load_arrays,
    prune_checkpoints,
    read_meta,
    save_checkpoint,
    schedule_of,
    set_aside_newer,
)
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.stored.speech_sources import sources_of
from xtts.trainer.stored.stored_model import open_model
from xtts.trainer.system.device import device_name, device_state

_UNPADDED_WARNING = (
    "warning: the cache holds unpadded clips, so training stops to trace and compile every new shape. "
    "This is the slow baseline, which crashes after some sixty shapes, when the kernel has no memory maps left; build "
    "the cache with shapes.pad_to_fixed_length: true to train in lockstep"
)


class TrainingRun:
    """The state of a run. Inside its `with` block it handles signals; leaving it saves what a failed run can save.

    The graph runs in its own thread; meanwhile this one reports the previous call.
    """

    def __init__(self, plan: RunPlan, console: Console, compiler: Compiler, group: ProcessGroup = ALONE) -> None:
        """Raise `LockstepError` in every process if one was started with different settings or another cache."""
        self.plan, self.compiler, self.group = plan, compiler, group
        self.training = self.plan.config.training
        self.stop_reason = ""
        """Why the run ends before its last step, known to all processes; empty while it continues."""
        self.requests: list[str] = []
        """Reasons to stop that this process has received, such as the name of a signal."""
        self._check_group()
        self.buckets = training_buckets(self.plan.cache, self.plan.spec, self.plan.config)
        if self.plan.is_rank_0 and self.plan.spec.fixed_length:
            console.print(
                f"tracing and compiling {counted_noun(len(self.buckets), 'shape')}: up to a minute each on two cores, "
                "seconds if compiled before", highlight=False, soft_wrap=True,
            )  # fmt: skip
        self._reused = ""
        """Rows that the start shares with tables whose rows differ, in words."""
        self.loops = build_loops(
            self.buckets, self.plan.kind, self.plan.config, restore=self._restore, compiler=compiler, group=group
        )  # fmt: skip
        self.state, self.step_functions = self.loops.state, self.loops.step_functions
        self.metrics = self.step_functions.metrics
        self.loop, self.validation = self.loops.loop, self.loops.validation
        fix = "give every worker the same checkpoint: a run folder that all of them see, or a copy of it"
        if group.cluster:
            group.check_same({"restored state": self.state.digest()}, fix=fix)
        self.best = self._best_so_far()
        self.samples = self._make_samples()
        self.step = int(self.state.step.numpy())
        self._saved_step = self.step if self.plan.resume else -1
        self._left_loop = math.nan
        """`time.perf_counter()` at the end of the last host call."""
        self.graph = GraphThread(self._pass_on_requests)
        self.reporter = self._open_reporter(console)
        self._stack = ExitStack()

    def _check_group(self) -> None:
        plan, group = self.plan, self.group
        by_jax = self.training.runtime == "jax"
        if (by_jax or group.size > 1) and not plan.spec.fixed_length:
            cannot = "JAX cannot train on" if by_jax else f"{group.size} devices cannot share"
            alone = "training.runtime=tensorflow" if by_jax else "training.strategy=single"
            raise LockstepError(
                str(plan.cache), found=f"unpadded clips, which {cannot}", expected="shapes.pad_to_fixed_length: true",
                fix=f"{build_command(plan.cache)}, or train with --set {alone}",
            )  # fmt: skip
        facts = {"version of lockstep-tts": metadata.version("lockstep-tts"), **plan.facts}
        group.check_same(facts, fix="start every worker with the same settings, cache and checkpoint")

    def _restore(self, state: TrainState) -> None:
        if self.plan.resume:
            state.restore(load_arrays(self.plan.resume))
        elif self.plan.init_from:
            stored = open_model(self.plan.init_from)
            initial = self.plan.kind.initial_weights(stored, state.model, self.plan.cache, self.plan.spec)
            state.restore_weights(initial.averages)
            self._reused = initial.reused

    def _best_so_far(self) -> Best:
        if not self.plan.resume:
            return Best()
        progress = read_meta(self.plan.resume)["progress"]
        best = Best(**progress["best_validation"])
        if progress["schedule"] != schedule_of(self.training):
            best.since = 0  # patience starts again if more steps are requested
        return best

    def _make_samples(self) -> Samples:
        """The samples of rank 0, submitted to the compiler; empty in other processes."""
        plan, every = self.plan, self.training.samples_every if self.plan.is_rank_0 else None
        training = self.training.model_copy(update={"samples_every": every})
        samples = plan.kind.samples(self.state.model, plan.cache, plan.spec, training)
        if not samples.empty:
            self.compiler.submit(SAMPLES, samples.speak)
        return samples

    def _open_reporter(self, console: Console) -> Reporter:
        """The reporter of this process; that of rank 0 opens the run folder, and sets aside what a resume leaves."""
        if not self.plan.is_rank_0:
            return SilentReporter()
        plan, training = self.plan, self.training
        if plan.resume:  # its start may be gone
            self._sources = RunFolder.of_checkpoint(plan.resume).sources()
        else:
            start = open_model(plan.init_from).passed_on() if plan.init_from else []
            self._sources = [*sources_of(plan.cache, plan.spec), *start]
        self._write_run_files(plan.config)
        plan.folder.forget_after(self.step if plan.resume else -1)
        reporter = Reporter(
            plan.folder, console, self.metrics, total_steps=training.steps, log_every=training.log_every,
            buckets=len(self.loop.closed_set), tensorboard=TensorBoard(plan.folder.tensorboard),
            device_state=device_state(),
        )  # fmt: skip
        if self._reused:
            reporter.say(f"{plan.init_from}: reused embeddings of {self._reused}")
        for path in set_aside_newer(plan.folder.checkpoints, self.step) if plan.resume else []:
            reporter.say(f"set aside {path.name}: the run continues from step {self.step}")
        return reporter

    def _write_run_files(self, config: Config) -> None:
        plan = self.plan
        url = plan.copy.url.full if plan.copy else None
        plan.folder.write_run_files(
            config, plan.cache, plan.spec, url=url, init_from=plan.init_from, sources=self._sources
        )

    def __enter__(self) -> Self:
        self._stack.callback(self.reporter.close)
        self._stack.enter_context(self.graph)
        self.requests = self._stack.enter_context(stop_requests())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if isinstance(error, RunEnded):
                self._save_whole_step()

    def _pass_on_requests(self) -> None:
        if self.requests:
            self.loop.stop.assign(True)
            if not self.group.cluster:
                self.note_stop()

    def request_stop(self, reason: str) -> None:
        """Ask all processes to end the run after its next step."""
        self.requests.append(reason)
        self.loop.stop.assign(True)

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

    def compile(self) -> None:
        """Wait until every step is compiled, or for a signal.

        Each has then run once on blank inputs, the largest first: a device that has too little memory for the longest
        clips fails here, not hours later.
        """
        plan, name = self.plan, self.plan.kind.model_name(self.plan.config)
        device = self.loops.runtime.device_name if self.loops.runtime else device_name()
        self.reporter.say(
            f"{plan.folder.path}: model {name}, {self.state.model.parameter_count:,} parameters, "
            f"{counted_noun(plan.spec.statistics.clips, 'clip')} in {counted_noun(len(self.buckets), 'shape')}; "
            f"step {self.step} of "
            f"{self.training.steps}\ndevice: {device}{self.group.described}"
        )
        shapes = {training_step(bucket.number): bucket for bucket in self.loop.closed_set}
        if not shapes:
            self.reporter.say(_UNPADDED_WARNING)
        prepared = self.graph.submit(self.loop.prepare)
        if self.plan.resume is None and not self.samples.empty:
            self.reporter.recordings(self.samples)
        for name in self.step_functions.compile_calls:
            described = f", {shapes[name].described}" if name in shapes else ""
            if not self.stop_reason:
                with explained(f"compiling the {name}{described}", compile_fix()):
                    seconds = self.graph.result(self.compiler.step(name))
                self.reporter.say(f"compiled the {name}{described} in {seconds:.1f} s")
        self.graph.result(prepared)
        if self.goes_on:
            self.reporter.say("training begins")
        self._left_loop = time.perf_counter()

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
            first_step=first,
            result=result,
            metrics=self.metrics,
            outside_seconds=outside + result.wall - float(result.seconds.sum()),
            traces=self.step_functions.guard.count("training"),
            epoch=int(self.state.position.epoch.numpy()),
        )
        self.reporter.keep(chunk)
        return chunk

    @property
    def is_stale(self) -> bool:
        """Whether the last `training.patience` validations brought no improvement, and the decay is still to come."""
        patience = self.training.patience
        return patience is not None and self.best.since >= patience and self.step < decay_start(self.training)

    def begin_decay(self) -> None:
        """Let the learning rate decay from here: the run ends earlier, and with what a decay gives."""
        self.training = decaying_from(self.training, self.step)
        config = self.plan.config.model_copy(update={"training": self.training})
        self.reporter.say(
            f"no better validation since step {self.best.step} (training.patience = {self.training.patience}): the "
            f"learning rate now decays, and the run ends at step {self.training.steps}"
        )
        if self.plan.is_rank_0:
            self._write_run_files(config)
        self.reporter.total_steps = self.training.steps
        self.graph.run(self.loop.follow, self.training)
        self.save()

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """The context in which the model has its averaged weights; it restores the weights, also after an error."""
        self.loops.exchange_averages()
        self.loops.pull()  # for the samples, which TensorFlow speaks
        try:
            yield
        finally:
            self.loops.exchange_averages()

    def reading_cache(self, task: str) -> AbstractContextManager[None]:
        """The context of a graph call that reads the cache; its failures are `explained`."""
        resume = f"xtts-train --resume {self.plan.folder.path}"
        fix = f"run xtts-precompute verify --cache {self.plan.named_cache}, then {resume}"
        return explained(task, fix, resume=resume)

    def save(self) -> None:
        """Save a checkpoint of this step, unless there is one."""
        self.reporter.flush()
        if self._saved_step == self.step or not self.plan.is_rank_0:
            return
        self.loops.pull()
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

    def finish(self) -> None:
        """Save the last step; report the reason if it is not the run's last."""
        self.save()
        self.group.rank_0_says(False)  # the others wait for the last checkpoint
        if self.stop_reason:
            folder = self.plan.folder.path
            self.reporter.say(
                f"{self.stop_reason}: saved step {self.step}; continue with: xtts-train --resume {folder}, or export "
                f"its voice with: xtts-train --finish {folder}"
            )

    def _save_whole_step(self) -> None:
        """Save the last whole step of a run that failed; nothing if there is none, or it cannot be known."""
        if (step := self.loop.last_whole_step()) and self.plan.is_rank_0:
            self.step = step
            self.save()
            self.reporter.say(f"saved step {self.step}")
