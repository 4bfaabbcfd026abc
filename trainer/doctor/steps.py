"""The trainer's own data sets, locked steps and loop: what runs in it, timed inside it; nothing is written."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.data.dataset import training_batches, validation_batches
from xtts.trainer.data.training_bucket import TrainingBucket, training_buckets
from xtts.trainer.doctor.results import Fact, Problem, Result
from xtts.trainer.doctor.setup import Setup
from xtts.trainer.engine.engine import TracedSteps, build_engine
from xtts.trainer.engine.metrics import TRAIN_METRICS
from xtts.trainer.engine.training_loop import CallResult

PROFILED = 10
_OPENING_STEPS = 8
"""Most steps per bucket until every bucket has been drawn once."""
_STEADY, _UNEVEN = 0.1, 0.3
_TOLERATED_WAIT = 0.2
"""Share of the time that steps may wait for their batches."""


def data_sets(buckets: Iterable[TrainingBucket]) -> dict[str, tuple[TrainingBucket, tf.data.Dataset]]:
    """(bucket, data set) of all that training would read, by name."""
    buckets = list(buckets)
    named = {f"training bucket {b.number:02d}": (b, training_batches(b, 0)) for b in buckets if b.trains}
    return named | {f"validation bucket {b.number:02d}": (b, validation_batches(b)) for b in buckets if b.validates}


class Workload:
    """The engine, built as in the trainer, so that a run finds the steps compiled here.

    traced: what `build_engine` takes as `steps`.
    """

    def __init__(self, setup: Setup, traced: TracedSteps | None = None) -> None:
        buckets = training_buckets(setup.cache, setup.spec, setup.config)
        self.setup, self.buckets = setup, {bucket.number: bucket for bucket in buckets}
        engine = build_engine(buckets, setup.config, steps=traced)
        self.state, self.steps, self.loop, self.validation = engine.state, engine.steps, engine.loop, engine.validation

    def prepare(self) -> float:
        """Compile every step and open every iterator; returns the seconds of compiling alone.

        A bucket's first batch waits for a whole block to be read, once per run.
        """
        began = time.perf_counter()
        places = range(len(self.loop.buckets))
        self.steps.compile()
        self.loop.prepare()
        compiled = time.perf_counter() - began
        opened: set[int] = set()
        for _ in range(_OPENING_STEPS * len(places)):
            if len(opened) == len(places):
                break
            opened.update(self.loop.run(1).buckets.tolist())
        return compiled


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """Timing of N steps."""

    compile_seconds: float
    """Compilation of all buckets; those in XLA's cache are only loaded."""
    seconds: np.ndarray
    """float64[N, 3], as in `CallResult`."""
    places: np.ndarray
    """int32[N]: index of the step's bucket among the training buckets."""
    useful_frames: float
    """Frames in all N batches, without padding."""
    traces: int
    """Traces of training steps, after all N."""

    @property
    def whole(self) -> np.ndarray:
        """float64[N]: seconds from the end of one step to the end of the next."""
        return np.asarray(self.seconds.sum(axis=1))

    @property
    def mean(self) -> float:
        """Seconds of a step without its wait: loading must not take longer."""
        return float((self.whole - self.seconds[:, 1]).mean())

    @property
    def wait_share(self) -> float:
        """Share of the time spent waiting for batches."""
        return float(self.seconds[:, 1].sum() / self.whole.sum())

    @property
    def unevenness(self) -> float:
        """Standard deviation / mean within a bucket, averaged over the steps."""
        spreads = np.zeros(len(self.places))
        for place in np.unique(self.places):
            seconds = self.whole[self.places == place]
            spreads[self.places == place] = seconds.std() / seconds.mean()
        return float(spreads.mean())


def run_steps(workload: Workload, count: int) -> StepTimes:
    """Compile every bucket's step and run `count` steps, in host calls of `training.steps_per_call`."""
    loop, compiled = workload.loop, workload.prepare()
    most = workload.setup.config.training.steps_per_call
    calls: list[CallResult] = []
    for done in range(0, count, most):
        calls.append(loop.run(min(count - done, most)))
    metrics = np.concatenate([call.metrics for call in calls])
    return StepTimes(
        compile_seconds=compiled,
        seconds=np.concatenate([call.seconds for call in calls]),
        places=np.concatenate([call.buckets for call in calls]),
        useful_frames=float(metrics[:, TRAIN_METRICS.index("useful_frames")].sum()),
        traces=workload.steps.guard.count("training"),
    )


def profile_steps(workload: Workload, folder: Path) -> None:
    """Let TensorFlow's profiler write a trace of `PROFILED` steps, which were compiled before, below a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tf.profiler.experimental.Profile(str(folder)):
            workload.loop.run(PROFILED)
    except (OSError, tf.errors.OpError) as error:
        raise LockstepError(str(folder), found=f"cannot be profiled into ({error})") from None


def steps(workload: Workload, times: StepTimes) -> Result:
    """The figures of the steps. A trace beyond the locked set ends the checks, so it is not a problem."""
    whole, count = times.whole, len(times.seconds)
    p50, p95 = np.percentile(whole, [50, 95])
    spread = times.unevenness
    verdict = "steady" if spread < _STEADY else "uneven" if spread < _UNEVEN else "swings"
    rate = times.useful_frames / whole.sum()
    buckets = len(workload.loop.buckets)
    facts = [
        Fact(name="compile time", value=times.compile_seconds,
             text=f"{times.compile_seconds:.1f} s for {buckets} shapes (less where XLA's cache holds them)"),
        Fact(name="step time", value={"p50": p50, "p95": p95, "mean": times.mean, "steps": count},
             text=f"p50 {1000 * p50:.1f} ms, p95 {1000 * p95:.1f} ms over {count} steps"),
        Fact(name="step steadiness", value={"std_over_mean": spread, "verdict": verdict},
             text=f"{verdict}: std/mean {spread:.2f} within a bucket; load of this machine {_load()}"),
        Fact(name="traces", value=times.traces, text=f"{times.traces} for {buckets} shapes"),
        Fact(name="useful frames/s", value=rate, text=f"{rate:,.0f}"),
    ]  # fmt: skip
    return facts, []


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else "unknown"


def input_wait(times: StepTimes) -> Result:
    """Share of the steps' time spent waiting for batches."""
    share = times.wait_share
    fact = Fact(name="input wait", value=share, text=f"{share:.1%} of the steps' time")
    if share <= _TOLERATED_WAIT:
        return [fact], []
    problem = Problem(
        name="input-wait",
        section="data",
        what=f"steps wait {share:.0%} of their time for a batch",
        cause="loading does not keep up with the steps, so the device is idle between them",
        fix="copy the cache to a local disk, and leave the input pipeline its own core",
        gain=f"{1 / (1 - share):.2f} times the steps a second",
    )
    return [fact], [problem]
