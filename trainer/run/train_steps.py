"""A run from the steps that `xtts-train --export-steps` wrote: NumPy reads, JAX steps, without TensorFlow.

The order of the clips is a table of the export. State, checkpoints and `metrics.jsonl` are those of every run, which
TensorFlow can continue.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from xtts.shared.config import Config
from xtts.shared.errors import LockstepError, read_json
from xtts.trainer.data.stored_batches import Input, StoredBatches
from xtts.trainer.loop.chunk import StoredBatch
from xtts.trainer.loop.failures import explained
from xtts.trainer.loop.jax_runtime import JaxRuntime, Program
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.program_loop import Place, ProgramLoop, ProgramValidation
from xtts.trainer.loop.step_names import EXCHANGE
from xtts.trainer.models.samples import Samples
from xtts.trainer.run.hooks import drive
from xtts.trainer.run.hosted_run import HostedRun
from xtts.trainer.run.reporter import Reporter
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.stored.checkpoint import load_arrays, set_aside_newer

FORMAT_VERSION = 2
STEPS_FILE, ORDER_FILE, CONSTANTS_FILE = "steps.json", "order.npz", "constants.npz"
OF_THE_HOST = {
    "runtime", "steps", "epochs", "patience", "max_bad_steps", "steps_per_call", "log_every", "validate_every",
    "samples_every", "sample_sentences", "samples_heard", "checkpoint_every", "keep_checkpoints", "learning_rate",
    "warmup_fraction", "decay_fraction", "final_learning_rate_share", "learning_rate_batch_size",
}
"""Settings of training that the programs and the order do not contain."""


def settings_of_steps(config: Config) -> dict[str, Any]:
    """The settings that exported steps contain, by key of `training`."""
    return config.training.model_dump(mode="json", exclude=OF_THE_HOST)


class ExportedSteps:
    """`RUN/steps/`: programs, the order of the clips, and what each array of the state is in a checkpoint."""

    def __init__(self, folder: Path, config: Config) -> None:
        """Raise `LockstepError` if they cannot be read, or if a setting that they contain has changed."""
        self.described = read_json(folder / STEPS_FILE, "steps of xtts-train --export-steps", FORMAT_VERSION)
        for key, value in settings_of_steps(config).items():
            if (exported := self.described["settings"].get(key)) != value:
                found, fix = f"exported with training.{key} = {exported!r}", "export the steps again"
                raise LockstepError(str(folder), found=found, expected=repr(value), fix=fix)
        self.metrics = Metrics(**self.described["metrics"])
        self.programs = {
            name: Program(
                artifact=(folder / fields["file"]).read_bytes(), state=fields["state"],
                inputs=[Input(name, dtype, tuple(shape)) for name, dtype, shape in fields["inputs"]],
                writes={int(position): name for position, name in fields["writes"].items()},
            )
            for name, fields in self.described["programs"].items()
        }
        with np.load(folder / CONSTANTS_FILE) as constants:
            self._constants = dict(constants)
        with np.load(folder / ORDER_FILE) as order:
            self.order = dict(order)
        self.buckets: list[int] = self.described["buckets"]
        self.first_step = int(self.described["first_step"])
        """The step after which the order begins."""
        sizes = np.array(self.described["batch_sizes"], np.int64)
        taken = np.eye(len(sizes), dtype=np.int64)[self.order["buckets"]] * sizes
        self._consumed = self.order["first"] + np.concatenate([np.zeros([1, len(sizes)], np.int64), taken.cumsum(0)])
        """int64[n + 1, K]: clips of each bucket consumed before each step, and after the last."""

    def state(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The state that the programs read, from the arrays of a checkpoint."""
        joined = {
            vector: np.concatenate([arrays[name].ravel() for name, _, _ in sorted(parts, key=lambda part: part[2])])
            for vector, parts in self.described["vectors"].items()
        }
        named = arrays | joined | self._constants
        return {name: named[name] for program in self.programs.values() for name in program.state}

    def arrays(self, state: dict[str, np.ndarray], place: Place) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint at a place, from the state."""
        kept = {name: array for name, array in state.items() if name not in self._constants}
        for vector, parts in self.described["vectors"].items():
            numbers = kept.pop(vector)
            for name, shape, start in parts:
                kept[name] = numbers[start : start + np.prod(shape, dtype=int)].reshape(shape)
        return kept | {"epoch": np.asarray(place.epoch), "consumed": place.consumed}

    def place(self, step: int) -> Place:
        """The place after a step."""
        done = step - self.first_step
        epoch = self.order["epochs"][done - 1] if done else self.order["first_epoch"]
        return Place(step, int(epoch), self._consumed[done])

    def draw(self, place: Place) -> tuple[int, Place]:
        """See `Order`."""
        return int(self.order["buckets"][place.batches - self.first_step]), self.place(place.batches + 1)

    def batch(self, index: int, offset: int) -> StoredBatch:
        """See `Order`."""
        bucket, size = self.buckets[index], self.described["batch_sizes"][index]
        start = offset - int(self.order["first"][index])
        return bucket, [(int(s), int(r)) for s, r in self.order[f"clips/{bucket}"][start : start + size]]


class StepsRun(HostedRun):
    """A run from exported steps."""

    loop: ProgramLoop

    def __init__(self, plan: RunPlan, checkpoint: Path, console: Console) -> None:
        """Raise `LockstepError` if steps, checkpoint and settings do not belong together, or JAX is missing."""
        super().__init__(plan)
        self.steps = steps = ExportedSteps(plan.folder.steps, plan.config)
        first, arrays, fix = steps.first_step, load_arrays(checkpoint), "export the steps again"
        last = first + len(steps.order["buckets"])
        if not first <= self.step <= self.training.steps <= last:
            found, expected = f"steps {first} to {last}", f"{self.step} to {self.training.steps}"
            raise LockstepError(str(plan.folder.steps), found=found, expected=expected, fix=fix)
        place = steps.place(self.step)
        if arrays["epoch"] != place.epoch or not np.array_equal(arrays["consumed"], place.consumed):
            found = f"an order that reads other clips after step {self.step} than {checkpoint}"
            raise LockstepError(str(plan.folder.steps), found=found, expected="the order of the run", fix=fix)
        self.metrics, self.samples, reader = steps.metrics, Samples(), StoredBatches(plan.cache, plan.spec)
        self.runtime = JaxRuntime(steps.programs, steps.state(arrays))
        self.loop = ProgramLoop(self.runtime, steps, reader, place, self.training, self.metrics)
        validated = [(bucket, clips) for bucket, clips in steps.described["validation"]]
        self.validation = ProgramValidation(self.loop, validated, reader, self.metrics)
        plan.folder.forget_after(self.step)
        set_aside_newer(plan.folder.checkpoints, self.step)
        self.reporter = Reporter(
            plan.folder, console, self.metrics, total_steps=self.training.steps,
            log_every=self.training.log_every,
        )

    def compile(self) -> None:
        """Compile every program."""
        for name in self.steps.programs:
            began = time.perf_counter()
            with explained(f"compiling the {name}", "see xtts-doctor"):
                self.runtime.compile(name)
            self.reporter.say(f"compiled the {name} in {time.perf_counter() - began:.1f} s")
        self.reporter.say(f"training on {self.runtime.device_name}, from step {self.step} of {self.training.steps}")
        self._left_loop = time.perf_counter()

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """See `HostedRun`."""
        self.runtime.call(EXCHANGE)
        try:
            yield
        finally:
            self.runtime.call(EXCHANGE)

    def _arrays(self) -> dict[str, np.ndarray]:
        return self.steps.arrays(self.runtime.state(), self.loop.place)

    def finish(self) -> None:
        """See `HostedRun`."""
        self.save()
        self.reporter.device(self.step)
        folder, why = self.plan.folder.path, f"{self.stop_reason}: " if self.stop_reason else ""
        self.reporter.say(
            f"{why}saved step {self.step}; export its voice where TensorFlow is installed: xtts-train --finish "
            f"{folder}, or train on: xtts-train --resume {folder}"
        )


def train_steps(plan: RunPlan, checkpoint: Path, console: Console) -> None:
    """Train from the steps in `RUN/steps/` to the last step, or until asked to stop; always leave a checkpoint.

    Raises:
        LockstepError: See `StepsRun`, or a shard cannot be read.
    """
    with plan.held(), StepsRun(plan, checkpoint, console) as run:
        drive(run)
