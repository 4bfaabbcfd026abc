"""What the exported steps of a run cost on the device that JAX sees, without TensorFlow; the run stays as it is.

    python benchmarks/steps.py RUN [--cache DIR] [--calls 20] [--steps 100] [--out FILE.json]

RUN: a folder in which `xtts-train --export-steps` has written. For each step: seconds to compile it; of training, the
iterations of its loops and the kernels that it launches; milliseconds on the device, of calls that are queued at once,
and on the host, until a call returns. Then steps of the run itself: their milliseconds, useful frames per second, and
the shares of the time in which the device is idle and in which the loop waits for a batch.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from reporting.report import Row, report, table_lines
from rich.console import Console
from setup.commands import lines_of
from training_parts.kernels import count_kernels

from xtts.trainer.loop.step_names import UPDATE, training_step
from xtts.trainer.run.run_plan import make_plan
from xtts.trainer.run.train_steps import StepsRun


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--cache", type=Path, help="[default: the run's own]")
    parser.add_argument("--calls", type=int, default=20, help="of each step")
    parser.add_argument("--steps", type=int, default=100, help="of the run")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        copy = shutil.copytree(options.run, Path(work) / options.run.name)
        plan = make_plan((), (), {}, cache=options.cache, out=None, resume=str(copy), init_from=None)
        assert plan.resume is not None
        with plan.held():
            run = StepsRun(plan, plan.resume, Console(quiet=True))
            rows = [measured(run, name, options.calls) for name in run.steps.programs]
            device = {str(row["step"]): float(str(row["device, ms"])) for row in rows}
            whole = [trained(run, copy, options.steps, device)]
    name = f"{plan.kind.model_name(plan.config)}, {plan.config.training.mixed_precision}, on {run.runtime.device_name}"
    lines = [name, "", *table_lines(rows), "", *table_lines(whole)]
    report(lines, {"measured": name, "steps": rows, "run": whole}, options.out)


def measured(run: StepsRun, name: str, calls: int) -> Row:
    """Compile a step and call it on blank inputs, which change no weight."""
    inputs = [np.zeros(field.shape, field.dtype) for field in run.steps.programs[name].inputs]
    began = time.perf_counter()
    run.runtime.compile(name)
    compiled = time.perf_counter() - began
    run.runtime.call(name, *inputs)
    run.runtime.wait()
    began = time.perf_counter()
    results = [run.runtime.call(name, *inputs) for _ in range(calls)]
    queued = time.perf_counter() - began
    run.runtime.wait(results)
    done = time.perf_counter() - began
    loops, kernels = "", ""
    if name.startswith("training"):
        counted = count_kernels(run.runtime.optimised(name))
        loops, kernels = ", ".join(f"{loop.turns} x {loop.kernels}" for loop in counted.loops), str(counted.launched)
    return {
        "step": name, "compile, s": f"{compiled:.1f}", "loops": loops, "kernels": kernels,
        "device, ms": f"{1e3 * done / calls:.2f}", "host, ms": f"{1e3 * queued / calls:.2f}",
    }


def trained(run: StepsRun, folder: Path, steps: int, device: dict[str, float]) -> Row:
    """Train so many steps; device: milliseconds of each step on the device."""
    last = min(run.step + steps, run.training.steps)
    first = run.step
    while run.step < last:
        run.advance()
    run.reporter.flush()
    lines = lines_of(folder)[: last - first]
    seconds = np.array([line["step_seconds"] for line in lines])
    buckets = [run.steps.described["buckets"][index] for index in run.steps.order["buckets"][: len(lines)]]
    busy = sum(device[training_step(bucket)] + device[UPDATE] for bucket in buckets) / 1e3
    return {
        "steps": len(lines), "ms": f"{1e3 * seconds.mean():.2f}",
        "useful frames/s": f"{sum(line['useful_frames'] for line in lines) / seconds.sum():,.0f}",
        "idle": f"{max(0.0, 1 - busy / seconds.sum()):.1%}",
        "input wait": f"{(seconds * [line['input_wait_share'] for line in lines]).sum() / seconds.sum():.1%}",
    }


if __name__ == "__main__":
    main()
