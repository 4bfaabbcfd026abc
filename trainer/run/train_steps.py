"""A run from the steps that `xtts-train --export-steps` wrote: NumPy reads, JAX steps, without TensorFlow.

The order of the clips is a table of the export. State, checkpoints and `metrics.jsonl` are those of every run, which
TensorFlow can continue.
"""

import math
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.trainer.data.stored_batches import Input, StoredBatches
from xtts.trainer.loop.chunk import CallResult, Chunk
from xtts.trainer.loop.jax_runtime import JaxRuntime, Program, StepQueue
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.schedule import decay_start, decaying_from, learning_rate, next_mark
from xtts.trainer.loop.step_names import EXCHANGE, UPDATE, training_step, validation_step
from xtts.trainer.reporting.reporter import Reporter
from xtts.trainer.run.best_validation import Best
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.signals import stop_requests
from xtts.trainer.stored.checkpoint import (
    identity_of,
    load_arrays,
    prune_checkpoints,
    read_meta,
    save_checkpoint,
    schedule_of,
    set_aside_newer,
)  # fmt: skip
from xtts.trainer.stored.stored_json import read_json

FORMAT_VERSION = 1
STEPS_FILE, ORDER_FILE, CONSTANTS_FILE = "steps.json", "order.npz", "constants.npz"
_OF_THE_HOST = {
    "runtime", "steps", "epochs", "patience", "max_bad_steps", "steps_per_call", "log_every", "validate_every",
    "samples_every", "sample_sentences", "samples_heard", "checkpoint_every", "keep_checkpoints", "learning_rate",
    "warmup_fraction", "decay_fraction", "final_learning_rate_share", "learning_rate_batch_size",
}  # fmt: skip
"""Settings of training that the programs and the order do not contain."""


def settings_of_steps(config: Config) -> dict[str, Any]:
    """The settings that exported steps contain, by key of `training`."""
    return config.training.model_dump(mode="json", exclude=_OF_THE_HOST)


class ExportedSteps:
    """`RUN/steps/`: programs, the order of the clips, and what each array of the state is in a checkpoint."""

    def __init__(self, folder: Path, config: Config) -> None:
        """Raise `LockstepError` if they cannot be read, or if a setting that they contain has changed."""
        self.described = read_json(folder / STEPS_FILE, "steps of xtts-train --export-steps", FORMAT_VERSION)
        for key, value in settings_of_steps(config).items():
            if (exported := self.described["settings"].get(key)) != value:
                found, fix = f"exported with training.{key} = {exported!r}", "export the steps again"
                raise LockstepError(str(folder), found=found, expected=repr(value), fix=fix)
        metrics: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in self.described["metrics"].items()
        }
        self.metrics = Metrics(**metrics)
        self.programs = {name: _program(folder, fields) for name, fields in self.described["programs"].items()}
        with np.load(folder / CONSTANTS_FILE) as constants:
            self._constants = dict(constants)
        with np.load(folder / ORDER_FILE) as order:
            self.order = dict(order)
        sizes = np.array(self.described["batch_sizes"], np.int64)
        taken = np.eye(len(sizes), dtype=np.int64)[self.order["buckets"]] * sizes
        self.consumed = self.order["first"] + np.concatenate([np.zeros([1, len(sizes)], np.int64), taken.cumsum(0)])
        """int64[n + 1, K]: clips of each bucket consumed before each step, and after the last."""

    @property
    def first_step(self) -> int:
        """The step after which the order begins."""
        return int(self.described["first_step"])

    def state(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The state that the programs read, from the arrays of a checkpoint."""
        joined = {
            vector: np.concatenate([arrays[name].ravel() for name, _, _ in sorted(parts, key=lambda part: part[2])])
            for vector, parts in self.described["vectors"].items()
        }
        named = arrays | joined | self._constants
        return {name: named[name] for program in self.programs.values() for name in program.state}

    def arrays(self, state: dict[str, np.ndarray], step: int) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint at a step, from the state."""
        kept = {name: array for name, array in state.items() if name not in self._constants}
        for vector, parts in self.described["vectors"].items():
            numbers = kept.pop(vector)
            for name, shape, start in parts:
                kept[name] = numbers[start : start + np.prod(shape, dtype=int)].reshape(shape)
        done = step - self.first_step
        epoch = self.order["epochs"][done - 1] if done else self.order["first_epoch"]
        return kept | {"epoch": np.asarray(epoch), "consumed": self.consumed[done]}


def _program(folder: Path, fields: dict[str, Any]) -> Program:
    return Program(
        artifact=(folder / fields["file"]).read_bytes(), state=fields["state"],
        inputs=[Input(name, dtype, tuple(shape)) for name, dtype, shape in fields["inputs"]],
        writes={int(position): name for position, name in fields["writes"].items()},
    )  # fmt: skip


class StepsRun:
    """The state of a run from exported steps."""

    def __init__(self, plan: RunPlan, checkpoint: Path, console: Console) -> None:
        """Raise `LockstepError` if steps, checkpoint and settings do not belong together, or JAX is missing."""
        self._plan, self.training = plan, plan.config.training
        self.steps = ExportedSteps(plan.folder.steps, plan.config)
        self.step, first = plan.steps_done, self.steps.first_step
        last = first + len(self.steps.order["buckets"])
        if not first <= self.step <= self.training.steps <= last:
            found, expected = f"steps {first} to {last}", f"{self.step} to {self.training.steps}"
            raise LockstepError(str(plan.folder.steps), found=found, expected=expected, fix="export the steps again")
        self._clips = StoredBatches(plan.cache, plan.spec)
        self.runtime = JaxRuntime(self.steps.programs, self.steps.state(load_arrays(checkpoint)))
        self._best = Best(**read_meta(checkpoint)["progress"]["best_validation"])
        self._saved_step, self._bad_steps, self._left_loop = self.step, 0, math.nan
        plan.folder.forget_after(self.step)
        set_aside_newer(plan.folder.checkpoints, self.step)
        self.reporter = Reporter(
            plan.folder, console, self.steps.metrics, total_steps=self.training.steps,
            log_every=self.training.log_every, buckets=len(self.steps.described["buckets"]),
        )  # fmt: skip

    def compile(self) -> None:
        """Compile every program."""
        for name in self.steps.programs:
            began = time.perf_counter()
            self.runtime.compile(name)
            self.reporter.say(f"compiled the {name} in {time.perf_counter() - began:.1f} s")
        self.reporter.say(f"training on {self.runtime.device_name}, from step {self.step} of {self.training.steps}")
        self._left_loop = time.perf_counter()

    def advance(self, requests: Sequence[str]) -> None:
        """Train to the next task of the host, or until a stop is requested, then do what is due."""
        until = min(next_mark(self.training, self.step), self.step + self.training.steps_per_call)
        first, outside = self.step, time.perf_counter() - self._left_loop
        result = self._call(until, requests)
        self._left_loop = time.perf_counter()
        if not len(result.metrics):
            return
        steps = self.steps
        chunk = Chunk(
            first_step=first + 1, result=result, metrics=steps.metrics, traces=len(steps.described["buckets"]),
            outside_seconds=outside + result.wall - float(result.seconds.sum()),
            epoch=int(steps.order["epochs"][self.step - steps.first_step - 1]),
        )  # fmt: skip
        self.reporter.record(chunk)
        self._check(chunk)
        if self._is_due(self.training.validate_every) and not requests:
            self._validate()
        if self._is_due(self.training.checkpoint_every) or self.step == decay_start(self.training):
            self.save()

    def _is_due(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.training.steps

    def _call(self, until: int, requests: Sequence[str]) -> CallResult:
        """Train up to a step, or until a stop is requested."""
        first, began, queue = self.step - self.steps.first_step, time.perf_counter(), StepQueue()
        while self.step < until and not requests:
            self._launch(queue)
        queue.wait()
        done = np.arange(first, first + len(queue.metrics))
        buckets = self.steps.order["buckets"][done]
        return CallResult(
            np.array(queue.metrics, np.float32), np.array(queue.seconds), buckets,
            self.steps.consumed[done, buckets], time.perf_counter() - began,
        )  # fmt: skip

    def _launch(self, queue: StepQueue) -> None:
        """Read the next batch and queue its step."""
        steps, done, drawn = self.steps, self.step - self.steps.first_step, time.perf_counter()
        index = steps.order["buckets"][done]
        bucket, size = steps.described["buckets"][index], steps.described["batch_sizes"][index]
        start = steps.consumed[done, index] - steps.order["first"][index]
        inputs = steps.programs[training_step(bucket)].inputs
        batch = self._clips.read(bucket, "train", steps.order[f"clips/{bucket}"][start : start + size], inputs)
        frames = batch[[each.name for each in inputs].index("mel_length")].sum(dtype=np.int32)
        read, rate = time.perf_counter(), np.float32(learning_rate(self.training, self.step))
        losses, gradient = self.runtime.call(training_step(bucket), *batch)
        (metrics,) = self.runtime.call(UPDATE, losses, frames, rate, gradient)
        queue.add(metrics, drawn, read)
        self.step += 1

    def _check(self, chunk: Chunk) -> None:
        """End the run after too many steps in a row whose numbers are not finite."""
        for skipped in chunk.column("skipped"):
            self._bad_steps = self._bad_steps + 1 if skipped else 0
            if self._bad_steps >= self.training.max_bad_steps:
                found = f"{self._bad_steps} steps in a row whose numbers are not finite"
                raise LockstepError(f"step {self.step}", found=found, fix="lower training.learning_rate", exit_code=1)

    def _validate(self) -> None:
        """Validate with the averaged weights; keep the best, and begin the decay when it no longer improves."""
        batches, steps = self.steps.described["validation"], self.steps
        if not batches:
            return
        self.runtime.call(EXCHANGE)
        total, skipped = np.zeros([len(steps.metrics.held_out), 2]), 0
        for bucket, first, clips in batches:
            *inputs, _ = steps.programs[validation_step(bucket)].inputs
            batch = self._clips.read(bucket, "validation", clips, inputs)
            (sums,) = self.runtime.call(validation_step(bucket), *batch, np.int32(first))
            finite = bool(np.isfinite(sums).all())
            total, skipped = total + (np.asarray(sums, np.float64) if finite else 0.0), skipped + (not finite)
        self.runtime.call(EXCHANGE)
        means = (float(values / count) if count else math.nan for values, count in total)
        losses, training = dict(zip(steps.metrics.held_out, means, strict=True)), self.training
        self.reporter.validation(self.step, losses, steps.metrics.total(losses), skipped=skipped)
        if self._best.note(self.step, steps.metrics.score(losses)):
            self.save()
        elif training.patience and self._best.since >= training.patience and self.step < decay_start(training):
            self.training = decaying_from(training, self.step)
            self.reporter.total_steps = self.training.steps
            self.reporter.say(f"no better validation since step {self._best.step}: the learning rate now decays")
            self.save()

    def save(self) -> None:
        """Save a checkpoint of this step, unless there is one."""
        if self._saved_step == self.step:
            return
        plan, training, folder = self._plan, self.training, self._plan.folder.checkpoints
        asked = plan.asked_steps or plan.config.training.steps
        progress = {"best_validation": asdict(self._best), "schedule": schedule_of(training), "asked_steps": asked}
        arrays = self.steps.arrays(self.runtime.state(), self.step)
        save_checkpoint(folder, arrays, step=self.step, identity=identity_of(plan.config, plan.spec), progress=progress)
        prune_checkpoints(folder, training.keep_checkpoints, beside={decay_start(training), self._best.step or 0})
        self._saved_step = self.step


def train_steps(plan: RunPlan, checkpoint: Path, console: Console) -> None:
    """Train from the steps in `RUN/steps/` to the last step, or until asked to stop; always leave a checkpoint.

    Raises:
        LockstepError: See `StepsRun`, or a shard cannot be read.
    """
    with plan.held(), stop_requests() as requests:
        run = StepsRun(plan, checkpoint, console)
        with closing(run.reporter):
            run.compile()
            while run.step < run.training.steps and not requests:
                run.advance(requests)
            run.save()
            folder, why = plan.folder.path, f"{requests[0]}: " if requests else ""
            run.reporter.say(
                f"{why}saved step {run.step}; export its voice where TensorFlow is installed: xtts-train --finish "
                f"{folder}, or train on: xtts-train --resume {folder}"
            )
