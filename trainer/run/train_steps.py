"""A run from the steps that `xtts-train --export-steps` wrote: NumPy reads, JAX steps, without TensorFlow.

The order of the clips is a table of the export. State, checkpoints and `metrics.jsonl` are those of every run, which
TensorFlow can continue.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from xtts.shared.cache.cache_spec import Split
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError, read_json
from xtts.trainer.data.stored_batches import Input, StoredBatches
from xtts.trainer.loop.chunk import CallResult, Chunk, StoredBatch
from xtts.trainer.loop.failures import RunEnded, explained
from xtts.trainer.loop.jax_runtime import JaxRuntime, Program, StepQueue
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.schedule import learning_rate, next_mark
from xtts.trainer.loop.step_names import EXCHANGE, UPDATE, training_step, validation_step
from xtts.trainer.run.bad_clips import SkippedUpdates, UnreadClips
from xtts.trainer.run.hooks import Validate, save
from xtts.trainer.run.hosted_run import HostedRun
from xtts.trainer.run.reporter import Reporter
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.stored.checkpoint import load_arrays, set_aside_newer

FORMAT_VERSION = 2
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
        return kept | self.position(step)

    def position(self, step: int) -> dict[str, np.ndarray]:
        """The epoch of a step, and the clips of each bucket consumed after it, as a checkpoint stores them."""
        done = step - self.first_step
        epoch = self.order["epochs"][done - 1] if done else self.order["first_epoch"]
        return {"epoch": np.asarray(epoch), "consumed": self.consumed[done]}

    def batch(self, index: int, offset: int) -> StoredBatch:
        """The batch of the bucket at an index of the order, after so many of its clips."""
        bucket, size = self.described["buckets"][index], self.described["batch_sizes"][index]
        start = offset - int(self.order["first"][index])
        return bucket, [(int(s), int(r)) for s, r in self.order[f"clips/{bucket}"][start : start + size]]


def _program(folder: Path, fields: dict[str, Any]) -> Program:
    return Program(
        artifact=(folder / fields["file"]).read_bytes(), state=fields["state"],
        inputs=[Input(name, dtype, tuple(shape)) for name, dtype, shape in fields["inputs"]],
        writes={int(position): name for position, name in fields["writes"].items()},
    )  # fmt: skip


class _StepsValidation:
    """The validation of a run from exported steps."""

    def __init__(self, run: "StepsRun") -> None:
        self._run, self.unread = run, list[StoredBatch]()
        described = run.steps.described["validation"]
        self._firsts = [first for _, first, _ in described]
        self.batches: list[StoredBatch] = [(bucket, clips) for bucket, _, clips in described]

    @property
    def empty(self) -> bool:
        """See `Validation`."""
        return not self.batches

    def run(self) -> tuple[dict[str, float], list[StoredBatch]] | None:
        """See `Validation`."""
        run, names = self._run, self._run.metrics.held_out
        total, bad = np.zeros([len(names), 2]), list[StoredBatch]()
        for (bucket, clips), first in zip(self.batches, self._firsts, strict=True):
            if run.requests:
                return None
            *inputs, _ = run.steps.programs[validation_step(bucket)].inputs
            batch = run.read(bucket, "validation", clips, inputs)
            (sums,) = run.runtime.call(validation_step(bucket), *batch, np.int32(first))
            if np.isfinite(sums).all():
                total += np.asarray(sums, np.float64)
            else:
                bad.append((bucket, clips))
        means = (float(values / count) if count else math.nan for values, count in total)
        return dict(zip(names, means, strict=True)), bad


class StepsRun(HostedRun):
    """A run from exported steps."""

    def __init__(self, plan: RunPlan, checkpoint: Path, console: Console) -> None:
        """Raise `LockstepError` if steps, checkpoint and settings do not belong together, or JAX is missing."""
        super().__init__(plan)
        self.steps = ExportedSteps(plan.folder.steps, plan.config)
        self._first = self.steps.first_step
        last, arrays, fix = (
            self._first + len(self.steps.order["buckets"]),
            load_arrays(checkpoint),
            "export the steps again",
        )
        if not self._first <= self.step <= self.training.steps <= last:
            found, expected = f"steps {self._first} to {last}", f"{self.step} to {self.training.steps}"
            raise LockstepError(str(plan.folder.steps), found=found, expected=expected, fix=fix)
        position = self.steps.position(self.step)
        if any(not np.array_equal(arrays[name], position[name]) for name in position):
            found = f"an order that reads other clips after step {self.step} than {checkpoint}"
            raise LockstepError(str(plan.folder.steps), found=found, expected="the order of the run", fix=fix)
        self.metrics, self._clips = self.steps.metrics, StoredBatches(plan.cache, plan.spec)
        self.runtime = JaxRuntime(self.steps.programs, self.steps.state(arrays))
        self.validation = _StepsValidation(self)
        plan.folder.forget_after(self.step)
        set_aside_newer(plan.folder.checkpoints, self.step)
        self.reporter = Reporter(
            plan.folder, console, self.metrics, total_steps=self.training.steps,
            log_every=self.training.log_every, buckets=len(self.steps.described["buckets"]),
        )  # fmt: skip

    def compile(self) -> None:
        """Compile every program."""
        for name in self.steps.programs:
            began = time.perf_counter()
            with explained(f"compiling the {name}", "see xtts-doctor"):
                self.runtime.compile(name)
            self.reporter.say(f"compiled the {name} in {time.perf_counter() - began:.1f} s")
        self.reporter.say(f"training on {self.runtime.device_name}, from step {self.step} of {self.training.steps}")
        self._left_loop = time.perf_counter()

    def advance(self) -> Chunk:
        """See `HostedRun`."""
        until = min(next_mark(self.training, self.step), self.step + self.training.steps_per_call)
        first, outside = self.step, time.perf_counter() - self._left_loop
        with self.reading_cache(f"steps after {first}"):
            call = self.graph.submit(self._call, until)
            self.reporter.flush()
            result = self.graph.result(call)
        self._left_loop = time.perf_counter()
        epoch = self.steps.position(self.step)["epoch"]
        chunk = Chunk(
            first_step=first + 1, result=result, metrics=self.metrics, traces=len(self.steps.described["buckets"]),
            outside_seconds=outside + result.wall - float(result.seconds.sum()), epoch=int(epoch),
        )  # fmt: skip
        self.reporter.keep(chunk)
        return chunk

    def _call(self, until: int) -> CallResult:
        """Train up to a step, or until a stop is requested."""
        first, began, queue = self.step - self._first, time.perf_counter(), StepQueue()
        while self.step < until and not self.requests:
            self._launch(queue)
        queue.wait()
        done = np.arange(first, first + len(queue.metrics))
        buckets = self.steps.order["buckets"][done]
        return CallResult(
            np.array(queue.metrics, np.float32).reshape(-1, len(self.metrics.step)),
            np.array(queue.seconds).reshape(-1, 3), buckets, self.steps.consumed[done, buckets],
            time.perf_counter() - began, stopped=bool(self.requests),
        )  # fmt: skip

    def _launch(self, queue: StepQueue) -> None:
        """Read the next batch and queue its step."""
        steps, done, drawn = self.steps, self.step - self._first, time.perf_counter()
        index = steps.order["buckets"][done]
        bucket, clips = steps.batch(index, steps.consumed[done, index])
        inputs = steps.programs[training_step(bucket)].inputs
        batch = self.read(bucket, "train", clips, inputs)
        frames = batch[[each.name for each in inputs].index("mel_length")].sum(dtype=np.int32)
        read, rate = time.perf_counter(), np.float32(learning_rate(self.training, self.step))
        losses, gradient = self.runtime.call(training_step(bucket), *batch)
        (metrics,) = self.runtime.call(UPDATE, losses, frames, rate, gradient)
        queue.add(metrics, drawn, read)
        self.step += 1

    def read(
        self, bucket: int, split: Split, clips: Sequence[tuple[int, int]], inputs: Sequence[Input]
    ) -> list[np.ndarray]:
        """Read a batch, as `StoredBatches.read` does; `RunEnded` for a shard that cannot be read."""
        try:
            return self._clips.read(bucket, split, clips, inputs)
        except LockstepError as error:
            raise RunEnded(error.location, found=error.found, fix=error.fix, exit_code=1) from None

    def batch_of(self, chunk: Chunk, i: int) -> StoredBatch:
        """See `HostedRun`."""
        return self.steps.batch(int(chunk.result.buckets[i]), int(chunk.result.offsets[i]))

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """See `HostedRun`."""
        self.runtime.call(EXCHANGE)
        try:
            yield
        finally:
            self.runtime.call(EXCHANGE)

    def _follow(self, training: TrainingConfig) -> None:
        """Do nothing: each launch asks for its learning rate."""

    def _arrays(self) -> dict[str, np.ndarray]:
        return self.steps.arrays(self.runtime.state(), self.step)

    def _last_whole_step(self) -> int | None:
        try:
            self.runtime.state()
        except RuntimeError:  # of JAX: the device is lost, or the state was in the step that failed
            return None
        return self.step


def train_steps(plan: RunPlan, checkpoint: Path, console: Console) -> None:
    """Train from the steps in `RUN/steps/` to the last step, or until asked to stop; always leave a checkpoint.

    Raises:
        LockstepError: See `StepsRun`, or a shard cannot be read.
    """
    with plan.held(), StepsRun(plan, checkpoint, console) as run:
        validate = Validate(run, UnreadClips())
        run.compile()
        validate.make_up(run)
        hooks: list[Callable[[HostedRun, Chunk], None]] = [SkippedUpdates(), validate, save]
        while run.goes_on:
            chunk = run.advance()
            for hook in hooks:
                hook(run, chunk)
        run.save()
        folder, why = plan.folder.path, f"{run.stop_reason}: " if run.stop_reason else ""
        run.reporter.say(
            f"{why}saved step {run.step}; export its voice where TensorFlow is installed: xtts-train --finish "
            f"{folder}, or train on: xtts-train --resume {folder}"
        )
