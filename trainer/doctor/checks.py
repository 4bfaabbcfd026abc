"""All checks: run in the order that disturbs the measurements least, reported in the order of the page."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.doctor.environment import environment
from xtts.trainer.doctor.memory import available_bytes, memory
from xtts.trainer.doctor.results import Fact, Findings, Problem, Report
from xtts.trainer.doctor.settings import check_settings
from xtts.trainer.doctor.speed import (
    PROFILED,
    StepTimes,
    input_wait,
    load_times,
    loading,
    profile_steps,
    run_steps,
    step_times,
    storage,
)
from xtts.trainer.loop.failures import compile_fix, explained
from xtts.trainer.loop.replicas import TrainingLoops, build_loops
from xtts.trainer.run.best_validation import REMEDY, Overfitting
from xtts.trainer.run.setup import Setup
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.system.device import suited_to, weakest_card


def run_checks(
    setup: Setup, *, count: int, progress: Callable[[str], None], run: Path | None = None, profile: Path | None = None,
) -> Report:
    """Run all checks.

    count: steps to run, 0 compiles none; run: a run folder to check too; profile: folder for a trace of ten more steps.
    """
    card_notes: list[str] = []
    setup = replace(setup, config=suited_to(weakest_card(), setup.config, card_notes.append))
    history = [*overfitting(run)] if run else []
    steps_wanted = count > 0
    progress("tracing the steps")
    loops = build_loops(training_buckets(setup.cache, setup.spec, setup.config), setup.kind.objective, setup.config)
    progress("checking the machine")
    machine = [*environment()]
    if any(finding.name == "xla-fails" for finding in machine):
        count = 0
    with explained("compiling and running the steps", compile_fix()):
        fit, times = _measure_steps(loops, count, progress)
    if times and profile is not None:
        progress(f"profiling {PROFILED} steps")
        profile_steps(loops, profile)
    progress("reading batches")
    first, loads = load_times(loops, count)
    report = Report()
    report.add("environment", machine, [Fact(name="card", value=note, text=note) for note in card_notes])
    report.add("config", fit, check_settings(setup))
    step_seconds = times.mean if times else None
    data = [
        loading(first, loads, step_seconds=step_seconds),
        storage(loops.buckets, step_seconds=step_seconds),
    ]
    report.add("data", *data, *([input_wait(times)] if times else []))
    if times:
        report.add("steps", step_times(loops, times))
    elif steps_wanted:
        why = "they do not fit into memory" if count else "XLA does not compile on this machine"
        report.add("steps", [Fact(name="not run", value=True, text=why)])
    if history:
        report.add("run", history)
    return report


def _measure_steps(
    loops: TrainingLoops, count: int, progress: Callable[[str], None]
) -> tuple[Findings, StepTimes | None]:
    """Compile and run `count` steps if they fit into memory: (findings of the memory check, times)."""
    if not count:
        return [], None
    progress("estimating the memory of a step: XLA compiles it for that")
    fit = [*memory(loops, available_bytes())]
    if any(isinstance(finding, Problem) for finding in fit):
        return fit, None
    progress(f"compiling {len(loops.buckets)} steps and running {count}")
    return fit, run_steps(loops, count)


_NO_LOSSES = ("split", "step", "loss", "skipped")
"""Keys of a validation's line besides its losses."""


def overfitting(path: Path) -> Findings:
    """Check the validations of a run folder for overfitting; `LockstepError` if it has none."""
    rows = list(RunFolder(path).metrics())
    validations = [row for row in rows if row["split"] == "validation"]
    if not validations:
        raise LockstepError("--run", found=f"{path} has no validation", expected="a run folder")
    text = f"{len(validations)} to step {validations[-1]['step']}"
    yield Fact(name="validations", value=len(validations), text=text)
    for line in Overfitting([name for name in validations[-1] if name not in _NO_LOSSES]).replay(rows):
        yield Problem(name="overfitting", what=line, cause="the recordings are few for so many steps", fix=REMEDY)
