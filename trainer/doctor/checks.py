"""All checks: run in the order that disturbs the measurements least, reported in the order of the page."""

from collections.abc import Callable
from dataclasses import replace

from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.doctor.environment import environment
from xtts.trainer.doctor.memory import available_bytes, memory
from xtts.trainer.doctor.results import Fact, Findings, Problem, Report
from xtts.trainer.doctor.settings import check_settings
from xtts.trainer.doctor.speed import (
    StepTimes,
    input_wait,
    load_times,
    loading,
    run_steps,
    step_times,
)
from xtts.trainer.loop.failures import compile_fix, explained
from xtts.trainer.loop.replicas import TrainingLoops, build_loops
from xtts.trainer.run.setup import Setup
from xtts.trainer.system.device import suited_to, weakest_card


def run_checks(setup: Setup, *, count: int, progress: Callable[[str], None]) -> Report:
    """Run all checks; count: steps to run, 0 compiles none."""
    card_notes: list[str] = []
    setup = replace(setup, config=suited_to(weakest_card(), setup.config, card_notes.append))
    steps_wanted = count > 0
    progress("tracing the steps")
    loops = build_loops(training_buckets(setup.cache, setup.spec, setup.config), setup.kind.objective, setup.config)
    progress("checking the machine")
    machine = [*environment()]
    if any(finding.name == "xla-fails" for finding in machine):
        count = 0
    with explained("compiling and running the steps", compile_fix()):
        fit, times = _measure_steps(loops, count, progress)
    progress("reading batches")
    first, loads = load_times(loops, count)
    report = Report()
    report.add("environment", machine, [Fact(name="card", value=note, text=note) for note in card_notes])
    report.add("config", fit, check_settings(setup))
    step_seconds = times.mean if times else None
    data = loading(first, loads, step_seconds=step_seconds)
    report.add("data", data, *([input_wait(times)] if times else []))
    if times:
        report.add("steps", step_times(loops, times))
    elif steps_wanted:
        why = "they do not fit into memory" if count else "XLA does not compile on this machine"
        report.add("steps", [Fact(name="not run", value=True, text=why)])
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
