"""All checks: run in the order that disturbs the measurements least."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from xtts.shared.errors import counted_noun
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.doctor.environment import environment
from xtts.trainer.doctor.memory import available_bytes, memory
from xtts.trainer.doctor.results import Fact, Findings, Problem, problems_of
from xtts.trainer.doctor.settings import check_settings
from xtts.trainer.loop.chunk import CallResult
from xtts.trainer.loop.failures import compile_fix, explained
from xtts.trainer.loop.replicas import TrainingLoops, build_loops
from xtts.trainer.run.setup import Setup
from xtts.trainer.system.device import suited_to, weakest_card

_OPENING_STEPS = 8
"""Largest number of steps per bucket until every bucket has been drawn once."""
_TOLERATED_WAIT = 0.2
"""Share of the time that steps may wait for their batches."""


def run_checks(setup: Setup, *, count: int, progress: Callable[[str], None]) -> list[Fact | Problem]:
    """Run all checks; count: steps to run, 0 compiles none."""
    notes: list[str] = []
    setup = replace(setup, config=suited_to(weakest_card(), setup.config, notes.append))
    findings = [*environment(), *(Fact(name="card", value=note, text=note) for note in notes), *check_settings(setup)]
    if not count:
        return findings
    progress("tracing the steps")
    loops = build_loops(training_buckets(setup.cache, setup.spec, setup.config), setup.kind.objective, setup.config)
    with explained("compiling and running the steps", compile_fix()):
        progress("estimating the memory of a step: XLA compiles it for that")
        fit = [*memory(loops, available_bytes())]
        if problems_of(fit):
            return [*findings, *fit]
        progress(f"compiling {len(loops.buckets)} steps and running {count}")
        seconds = warm_up(loops)
        most = loops.step_functions.training.steps_per_call
        calls = [loops.loop.run(min(count - done, most)) for done in range(0, count, most)]
    compiled = f"{seconds:.1f} s for {counted_noun(len(loops.buckets), 'shape')} (less where XLA's cache holds them)"
    return [*findings, *fit, Fact(name="compile time", value=seconds, text=compiled), *step_times(loops, calls)]


def warm_up(loops: TrainingLoops) -> float:
    """Compile every step and open every iterator: return the seconds of compiling alone.

    A bucket's first batch waits until a block has been read, once per run.
    """
    began = time.perf_counter()
    loops.step_functions.compile()
    loops.loop.prepare()
    compiled = time.perf_counter() - began
    opened, buckets = set[int](), len(loops.buckets)
    for _ in range(_OPENING_STEPS * buckets):
        if len(opened) == buckets:
            break
        opened.update(loops.loop.run(1).buckets.tolist())
    return compiled


def step_times(loops: TrainingLoops, calls: list[CallResult]) -> Findings:
    """Check the times of the steps in these calls, and the share of them spent waiting for batches."""
    seconds, waiting = (np.concatenate([getattr(call, name) for call in calls])
                        for name in ("step_seconds", "wait_seconds"))
    frames = sum(call.metrics[:, loops.step_functions.metrics.step.index("useful_frames")].sum() for call in calls)
    (p50, p95), rate = np.percentile(seconds, [50, 95]).tolist(), float(frames / seconds.sum())
    share = float(waiting.sum() / seconds.sum())
    times = f"p50 {1000 * p50:.1f} ms, p95 {1000 * p95:.1f} ms over {len(seconds)} steps"
    yield Fact(name="step time", value={"p50": p50, "p95": p95, "steps": len(seconds)}, text=times)
    yield Fact(name="useful frames/s", value=rate, text=f"{rate:,.0f}")
    yield Fact(name="input wait", value=share, text=f"{share:.1%} of the steps' time")
    if share > _TOLERATED_WAIT:
        yield Problem(
            name="input-wait", what=f"steps wait {share:.0%} of their time for a batch",
            cause="the disk or network that holds the cache, or other work on the processor, is slower than the step",
            remedy="copy the cache to a local disk, and leave the input pipeline its own core",
            gain=f"{1 / (1 - share):.2f} times the steps a second",
        )
