"""A run whose steps TensorFlow has traced: its loops, samples and files."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata

import numpy as np
from rich.console import Console

from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError, build_command, counted_noun
from xtts.trainer.data.training_bucket import TrainingBucket, training_buckets
from xtts.trainer.loop.compiler import Compiler
from xtts.trainer.loop.failures import compile_fix, explained
from xtts.trainer.loop.process_group import ALONE, ProcessGroup
from xtts.trainer.loop.program_loop import ProgramLoop
from xtts.trainer.loop.replicas import build_loops
from xtts.trainer.loop.step_names import training_step
from xtts.trainer.loop.train_state import TrainState
from xtts.trainer.models.samples import SAMPLES, Samples
from xtts.trainer.run.hosted_run import HostedRun
from xtts.trainer.run.reporter import Reporter, SilentReporter
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.tensorboard import TensorBoard
from xtts.trainer.stored.checkpoint import load_arrays, set_aside_newer
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.stored.speech_sources import sources_of
from xtts.trainer.stored.stored_model import open_model
from xtts.trainer.system.device import device_name

_UNPADDED_WARNING = (
    "warning: the cache holds unpadded clips, so training stops to trace and compile every new shape. "
    "This is the slow baseline, which crashes after some sixty shapes, when the kernel has no memory maps left; build "
    "the cache with shapes.pad_to_fixed_length: true to train in lockstep"
)


class TrainingRun(HostedRun):
    """A run whose steps are functions of TensorFlow, in its graph or by JAX."""

    def __init__(self, plan: RunPlan, console: Console, compiler: Compiler, group: ProcessGroup = ALONE) -> None:
        """Raise `LockstepError` in every process if one was started with different settings or another cache."""
        super().__init__(plan)
        self.compiler, self.group = compiler, group
        self._check_group()
        self.buckets = training_buckets(self.plan.cache, self.plan.spec, self.plan.config)
        if self.plan.is_rank_0 and self.plan.spec.fixed_length:
            console.print(
                f"tracing and compiling {counted_noun(len(self.buckets), 'shape')}: up to a minute each on two cores, "
                "seconds if compiled before", highlight=False, soft_wrap=True,
            )
        self.loops = build_loops(
            self.buckets, self.plan.kind.objective, self.plan.config, restore=self._restore, compiler=compiler,
            group=group,
        )
        self.state, self.step_functions = self.loops.state, self.loops.step_functions
        self.metrics = self.step_functions.metrics
        self.loop, self.validation = self.loops.loop, self.loops.validation
        fix = "give every worker the same checkpoint: a run folder that all of them see, or a copy of it"
        if group.cluster:
            group.check_same({"restored state": self.state.digest()}, fix=fix)
        self.samples = self._make_samples()
        self.reporter = self._open_reporter(console)

    def _check_group(self) -> None:
        plan, group = self.plan, self.group
        by_jax = self.training.runtime == "jax"
        if (by_jax or group.size > 1) and not plan.spec.fixed_length:
            cannot = "JAX cannot train on" if by_jax else f"{group.size} devices cannot share"
            alone = "training.runtime=tensorflow" if by_jax else "training.strategy=single"
            raise LockstepError(
                str(plan.cache), found=f"unpadded clips, which {cannot}", expected="shapes.pad_to_fixed_length: true",
                fix=f"{build_command(plan.cache)}, or train with --set {alone}",
            )
        facts = {"version of lockstep-tts": metadata.version("lockstep-tts"), **plan.facts}
        group.check_same(facts, fix="start every worker with the same settings, cache and checkpoint")

    def _restore(self, state: TrainState) -> None:
        if self.plan.resume:
            state.restore(load_arrays(self.plan.resume))
        elif self.plan.init_from:
            plan, stored = self.plan, open_model(self.plan.init_from)
            state.restore_weights(plan.kind.initial_weights(stored, state.model, plan.cache, plan.spec))

    def _make_samples(self) -> Samples:
        """The samples of rank 0, submitted to the compiler; empty in other processes."""
        plan, samples = self.plan, Samples()
        if plan.is_rank_0 and self.training.samples_every:
            samples = plan.kind.samples(self.state.model, plan.cache, plan.spec, self.training)
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
            tensorboard=TensorBoard(plan.folder.tensorboard),
        )
        for path in set_aside_newer(plan.folder.checkpoints, self.step) if plan.resume else []:
            reporter.say(f"set aside {path.name}: the run continues from step {self.step}")
        return reporter

    def _write_run_files(self, config: Config) -> None:
        plan = self.plan
        plan.folder.write_run_files(
            config, plan.cache, plan.spec, named=plan.named_cache, init_from=plan.init_from, sources=self._sources
        )

    def _pass_on_requests(self) -> None:
        if not self.group.cluster:
            super()._pass_on_requests()
        elif self.requests:  # the loop tells the other workers
            self.loop.stop()

    def request_stop(self, reason: str) -> None:
        """Ask all processes to end the run after its next step."""
        self.requests.append(reason)
        self.loop.stop()

    @property
    def _closed_set(self) -> Sequence[TrainingBucket]:
        """The buckets whose steps are compiled before the first batch; none where clips are unpadded."""
        return self.loops.buckets if self.plan.spec.fixed_length else []

    def compile(self) -> None:
        """Wait until every step is compiled, or for a signal.

        Each has then run once on blank inputs, the largest first: a device that has too little memory for the longest
        clips fails here, not hours later.
        """
        plan, name = self.plan, self.plan.kind.model_name(self.plan.config)
        device = self.loop.runtime.device_name if isinstance(self.loop, ProgramLoop) else device_name()
        self.reporter.say(
            f"{plan.folder.path}: model {name}, {self.state.optimizer.flat.size:,} parameters, "
            f"{counted_noun(plan.spec.statistics.clips, 'clip')} in {counted_noun(len(self.buckets), 'shape')}; "
            f"step {self.step} of "
            f"{self.training.steps}\ndevice: {device}{self.group.described}"
        )
        shapes = {training_step(bucket.number): bucket for bucket in self._closed_set}
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

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """The context in which the model has its averaged weights; it restores the weights, also after an error."""
        self.loops.exchange_averages()
        self.loops.pull()  # for the samples, which TensorFlow speaks
        try:
            yield
        finally:
            self.loops.exchange_averages()

    def _follow(self, training: TrainingConfig) -> None:
        if self.plan.is_rank_0:
            self._write_run_files(self.plan.config.model_copy(update={"training": training}))
        super()._follow(training)

    def _arrays(self) -> dict[str, np.ndarray]:
        self.loops.pull()
        return self.state.arrays()

    def agree(self, flag: bool) -> bool:
        """See `HostedRun`."""
        return self.group.rank_0_says(flag)

    def finish(self) -> None:
        """Save the last step; report the reason if it is not the run's last."""
        self.save()
        self.reporter.device(self.step)
        self.agree(False)  # the others wait for the last checkpoint
        if self.stop_reason:
            folder = self.plan.folder.path
            self.reporter.say(
                f"{self.stop_reason}: saved step {self.step}; continue with: xtts-train --resume {folder}, or export "
                f"its voice with: xtts-train --finish {folder}"
            )
