"""Speed of loading batches, and of the trainer's own locked steps in its own loop; nothing is written."""

import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from xtts.shared.errors import counted_noun
from xtts.trainer.data.dataset import training_batches
from xtts.trainer.doctor.results import Fact, Findings, Problem
from xtts.trainer.loop.chunk import CallResult
from xtts.trainer.loop.replicas import TrainingLoops

_OPENING_STEPS = 8
"""Largest number of steps per bucket until every bucket has been drawn once."""
_TOLERATED_WAIT = 0.2
"""Share of the time that steps may wait for their batches."""
_GOOD_SECONDS, _SLOW_SECONDS = 0.1, 0.5
"""Times to load a batch: good up to the first, slow beyond the second, if the step time is not known."""
_LOADED_BATCHES = 10
"""Batches loaded when no steps are requested."""
_DRAIN_SECONDS = 0.5
"""Time to drain the batches that were already prefetched: they do not show the loading speed."""


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


def load_times(loops: TrainingLoops, count: int) -> tuple[float, np.ndarray]:
    """Load about `count` batches in a mixed order, from every bucket its share of an epoch and at least two.

    All pipelines read ahead, as in training, at their maximum speed. Returns the longest wait for a first batch
    (opening, reading and shuffling a block; earlier checks read the same block, so it does not measure the disk) and
    the load time of every batch, float64[n], in seconds.
    """
    buckets = loops.buckets
    iterators = [iter(training_batches(bucket, 0)) for bucket in buckets]
    first = max(_wait(iterator) for iterator in iterators)
    batches = np.array([bucket.spec.epoch_clips(bucket.stored) / bucket.batch_size for bucket in buckets])
    shares = np.rint((count or _LOADED_BATCHES) * batches / batches.sum()).astype(int)
    mixed = np.random.default_rng(0).permutation(np.repeat(np.arange(len(buckets)), np.maximum(shares, 2)))
    order = (iterators[bucket] for bucket in itertools.cycle(mixed.tolist()))
    began = time.perf_counter()
    while time.perf_counter() - began < _DRAIN_SECONDS:
        next(next(order))
    return first, np.array([_wait(next(order)) for _ in mixed])


def _wait(iterator: Iterator[object]) -> float:
    began = time.perf_counter()
    next(iterator)
    return time.perf_counter() - began


def loading(first: float, seconds: np.ndarray, *, step_seconds: float | None) -> Findings:
    """Check the results of `load_times`, relative to the mean step time if known.

    first: seconds, seconds: float64[n].
    """
    mean, p95 = float(seconds.mean()), float(np.percentile(seconds, 95))
    measured = f"mean {1000 * mean:.1f} ms, p95 {1000 * p95:.1f} ms a batch"
    against = ""
    if step_seconds:
        against = f", {mean / step_seconds:.0%} of a step ({1000 * step_seconds:.1f} ms), which hides it"
    yield Fact(name="load time", value={"mean": mean, "p95": p95}, text=f"{measured}{against}")
    yield Fact(name="first batch", value=first, text=f"{first:.2f} s to open a bucket and read its block")
    if mean <= (step_seconds or _SLOW_SECONDS):
        return
    what = f"loading is slow: {measured}"
    if step_seconds:
        gain = f"{mean / step_seconds:.1f} times the steps a second: one takes {1000 * step_seconds:.1f} ms"
    else:
        gain = f"{mean / _GOOD_SECONDS:.1f} times the batches a second at 100 ms a batch"
    cause = "the disk or network that holds the cache, or other work on the processor, is slower than the step"
    fix = "copy the cache to a local disk, and check what else runs on this machine"
    yield Problem(name="slow-loading", what=what, cause=cause, fix=fix, gain=gain)


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """Timing of N steps."""

    compile_seconds: float
    """Compilation of all buckets; those in XLA's cache are only loaded."""
    steps: CallResult
    """Result of all host calls."""

    @property
    def mean(self) -> float:
        """Mean seconds of a step without its wait: loading must not take longer."""
        return float((self.steps.step_seconds - self.steps.wait_seconds).mean())


def run_steps(loops: TrainingLoops, count: int) -> StepTimes:
    """Compile every bucket's step and run `count` steps, in host calls of `training.steps_per_call`."""
    compiled = warm_up(loops)
    most = loops.step_functions.training.steps_per_call
    calls = [loops.loop.run(min(count - done, most)) for done in range(0, count, most)]
    columns = zip(*(call[:4] for call in calls), strict=True)
    metrics, seconds, buckets, offsets = (np.concatenate(arrays) for arrays in columns)
    steps = CallResult(metrics, seconds, buckets, offsets, wall=sum(call.wall for call in calls))
    return StepTimes(compile_seconds=compiled, steps=steps)


def step_times(loops: TrainingLoops, times: StepTimes) -> Findings:
    """Report the step times. A trace beyond the locked set ends the checks, so it is not a problem here."""
    seconds, drawn = times.steps.step_seconds, times.steps.buckets
    p50, p95 = np.percentile(seconds, [50, 95])
    of_buckets = [seconds[drawn == bucket] for bucket in np.unique(drawn)]
    spread = float(sum(len(own) * own.std() / own.mean() for own in of_buckets) / len(seconds))
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    frames = times.steps.metrics[:, loops.step_functions.metrics.step.index("useful_frames")]
    rate = float(frames.sum() / seconds.sum())
    buckets, traces = len(loops.buckets), loops.step_functions.guard.count("training")
    yield Fact(
        name="compile time", value=times.compile_seconds,
        text=f"{times.compile_seconds:.1f} s for {counted_noun(buckets, 'shape')} (less where XLA's cache holds them)",
    )
    yield Fact(
        name="step time", value={"p50": p50, "p95": p95, "mean": times.mean, "steps": len(seconds)},
        text=f"p50 {1000 * p50:.1f} ms, p95 {1000 * p95:.1f} ms over {len(seconds)} steps",
    )
    yield Fact(
        name="step spread", value={"std_over_mean": spread},
        text=f"std/mean {spread:.2f} within a bucket; load of this machine {load}",
    )
    yield Fact(name="traces", value=traces, text=f"{traces} for {counted_noun(buckets, 'shape')}")
    yield Fact(name="useful frames/s", value=rate, text=f"{rate:,.0f}")


def input_wait(times: StepTimes) -> Findings:
    """Check the share of the steps' time spent waiting for batches."""
    share = float(times.steps.wait_seconds.sum() / times.steps.step_seconds.sum())
    yield Fact(name="input wait", value=share, text=f"{share:.1%} of the steps' time")
    if share > _TOLERATED_WAIT:
        yield Problem(
            name="input-wait",
            what=f"steps wait {share:.0%} of their time for a batch",
            cause="loading does not keep up with the steps, so the device is idle between them",
            fix="copy the cache to a local disk, and leave the input pipeline its own core",
            gain=f"{1 / (1 - share):.2f} times the steps a second",
        )
