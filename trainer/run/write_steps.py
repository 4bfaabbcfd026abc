"""`xtts-train --export-steps`: the steps of a run, and the order of its clips, for machines without TensorFlow."""

import json
import shutil
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.loop.compiler import Compiler
from xtts.trainer.loop.program_loop import Place
from xtts.trainer.loop.programs import TracedOrder, export_programs
from xtts.trainer.loop.validation_loop import split_batches
from xtts.trainer.run.run_plan import RunPlan
from xtts.trainer.run.train_steps import CONSTANTS_FILE, FORMAT_VERSION, ORDER_FILE, STEPS_FILE, settings_of_steps
from xtts.trainer.run.training_run import TrainingRun


class _Postponed(Compiler):
    """Compiles nothing: the machine that trains does."""

    def submit(self, name: str, call: object) -> None:
        """Drop a step."""

    def step(self, name: str) -> Future[float]:
        """A finished compilation."""
        done = Future[float]()
        done.set_result(0.0)
        return done


def export_steps(plan: RunPlan, console: Console) -> Path:
    """Write `RUN/steps/` and, unless the run has one, a first checkpoint; return the folder.

    Raises:
        LockstepError: The cache holds no padded mels.
    """
    if not plan.spec.fixed_length:
        found, expected = "a cache without padded mels", "one of fixed shapes"
        raise LockstepError(plan.named_cache, found=found, expected=expected)
    with _Postponed() as compiler, plan.held(), TrainingRun(plan, console, compiler) as run:
        run.save()
        folder = plan.folder.steps
        partial = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        _write(run, partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return folder


def _write(run: TrainingRun, folder: Path) -> None:
    (replica,) = run.loops.replicas
    programs, variables = export_programs(replica.functions, run.state.variables)
    steps: dict[str, Any] = {}
    for number, (name, program) in enumerate(programs.items()):
        file = f"program-{number:02d}.stablehlo"
        (folder / file).write_bytes(program.artifact)
        steps[name] = {"file": file, **{k: v for k, v in asdict(program).items() if k != "artifact"}}
    buckets = run.loops.buckets
    vectors = {
        name: [(f"{name}/{weight.path}", [*weight.shape], span.start) for weight, span in parts]
        for name, _, parts in run.state.optimizer.vectors()
    }
    described = {
        "format_version": FORMAT_VERSION, "first_step": run.step, "settings": settings_of_steps(run.plan.config),
        "metrics": asdict(run.metrics), "programs": steps, "vectors": vectors,
        "buckets": [bucket.number for bucket in buckets], "batch_sizes": [bucket.batch_size for bucket in buckets],
        "validation": split_batches(run.buckets),
    }
    (folder / STEPS_FILE).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    constants = {name: variable.numpy() for name, variable in variables.items() if name.startswith("constant/")}
    np.savez(folder / CONSTANTS_FILE, **constants)
    np.savez_compressed(folder / ORDER_FILE, **_order(run))  # type: ignore[arg-type]


def _order(run: TrainingRun) -> dict[str, np.ndarray]:
    """The remaining batches: bucket int32[n], epoch int64[n], (shard, record) of each bucket's clips int32[N, 2]."""
    buckets, position = run.loops.buckets, run.state.position
    order, first = TracedOrder(buckets, run.training.seed), position.consumed.numpy()
    place, drawn, epochs = Place(run.step, int(position.epoch.numpy()), first), list[int](), list[int]()
    for _ in range(run.training.steps - run.step):
        index, place = order.draw(place)
        drawn.append(index)
        epochs.append(place.epoch)
    clips = {
        f"clips/{bucket.number}": np.array(bucket.order.records_from(int(start), int(end - start)), np.int32)
        for bucket, start, end in zip(buckets, first, place.consumed, strict=True)
    }
    table = {"buckets": np.array(drawn, np.int32), "epochs": np.array(epochs, np.int64), "first": first, **clips}
    return table | {"first_epoch": position.epoch.numpy()}
