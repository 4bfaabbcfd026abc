"""Locked steps, run by the trainer's own loop and timed inside it."""

import os
from dataclasses import dataclass

import numpy as np

from xtts.shared.config import TrainingConfig
from xtts.trainer.doctor.checks.cost import matmul_ceiling, step_flops
from xtts.trainer.doctor.finding import Fact, Finding, Result
from xtts.trainer.doctor.workload import Workload
from xtts.trainer.engine.metrics import TRAIN_METRICS
from xtts.trainer.engine.schedule import host_marks
from xtts.trainer.engine.training_loop import CallResult
from xtts.trainer.system.device import accelerator

_STEADY, _UNEVEN = 0.1, 0.3
_TOLERATED_WAIT = 0.2
"""Share of the time that steps may wait for their batches."""
_TOLERATED_ENTRY = 0.25
"""Share of the time that calls from Python into the graph may take."""
_FASTER_PRECISION = {"float32": 1.25, "bfloat16": 1.5}
"""A precision is advised if its matrix product is this many times faster; bfloat16 has to be worth its rounding."""


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
    entry_seconds: float
    """Time of a host call outside its steps: the minimum over calls, to exclude other programs."""
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
    most = workload.subject.config.training.steps_per_call
    calls: list[CallResult] = []
    entries = []
    for done in range(0, count, most):
        calls.append(loop.run(min(count - done, most)))
        entries.append(calls[-1].wall - calls[-1].seconds.sum())
    metrics = np.concatenate([call.metrics for call in calls])
    return StepTimes(
        compile_seconds=compiled,
        seconds=np.concatenate([call.seconds for call in calls]),
        places=np.concatenate([call.buckets for call in calls]),
        useful_frames=float(metrics[:, TRAIN_METRICS.index("useful_frames")].sum()),
        entry_seconds=max(float(min(entries)), 0.0),
        traces=workload.steps.guard.count("training"),
    )


def steps(workload: Workload, times: StepTimes) -> Result:
    """The figures of the steps. A trace beyond the locked set ends the examination, so it is not a finding."""
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
    finding = Finding(
        name="input-wait",
        section="data",
        what=f"steps wait {share:.0%} of their time for a batch",
        cause="loading does not keep up with the steps, so the device is idle between them",
        fix="copy the cache to a local disk, and leave the input pipeline its own core",
        gain=f"{1 / (1 - share):.2f} times the steps a second",
    )
    return [fact], [finding]


def host_entry(times: StepTimes, training: TrainingConfig) -> Result:
    """Cost of calling the graph from Python, per step of a call as long as in a real run."""
    limits = {"training.steps_per_call": training.steps_per_call} | host_marks(training)
    setting = min(limits, key=limits.__getitem__)
    length = limits[setting]
    share = times.entry_seconds / (times.entry_seconds + length * times.mean)
    text = f"{1000 * times.entry_seconds:.2f} ms per call of {length} steps, {share:.1%} of the time"
    fact = Fact(name="host calls", value={"seconds": times.entry_seconds, "share": share}, text=text)
    if share <= _TOLERATED_ENTRY:
        return [fact], []
    finding = Finding(
        name="host-calls",
        section="steps",
        what=f"entering the graph takes {share:.0%} of the time",
        cause=f"Python is entered for every {length} steps",
        setting=setting,
        value=10 * length,
        gain=f"{1 / (1 - share):.2f} times the steps a second",
    )
    return [fact], [finding]


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """FLOP/s, achieved and possible."""

    reached: float
    """FLOP/s of the steps: matrix products and convolutions, padding and backward pass included."""
    ceilings: dict[str, float]
    """FLOP/s of a large matrix product on this device, by precision."""
    used: str
    """Precision of the run."""
    gpu: bool
    """Whether the device is a GPU; on a CPU, which emulates bfloat16 outside of matrix products, it is not advised."""

    @property
    def share(self) -> float:
        """Achieved FLOP/s / ceiling of the precision used."""
        return self.reached / self.ceilings[self.used]


def measure_arithmetic(workload: Workload, times: StepTimes) -> Arithmetic:
    """Count the steps' FLOPs in XLA's programs, and measure the device's ceiling."""
    subject = workload.subject
    flops = [
        step_flops(workload.steps.gradient_steps[bucket.number], bucket.signature) for bucket in workload.loop.buckets
    ]
    work = float(np.array(flops, np.float64)[times.places].sum())
    ceilings = {dtype: matmul_ceiling(dtype) for dtype in ("float32", "bfloat16")}
    reached = work / float(times.whole.sum())
    used, gpu = subject.config.training.mixed_precision, accelerator() is not None
    return Arithmetic(reached=reached, ceilings=ceilings, used=used, gpu=gpu)


def arithmetic(figures: Arithmetic) -> Result:
    """Model FLOP/s against the ceiling, and which precision is faster."""
    used, ceilings = figures.used, figures.ceilings
    fact = Fact(
        name="model FLOP/s", value={"reached": figures.reached, "ceilings": ceilings, "share": figures.share},
        text=f"{figures.reached / 1e9:,.1f} GFLOP/s, {figures.share:.0%} of the {ceilings[used] / 1e9:,.0f} that a "
             f"{used} matrix product reaches here",
    )  # fmt: skip
    other = "float32" if used == "bfloat16" else "bfloat16"
    ratio = ceilings[other] / ceilings[used]
    if ratio < _FASTER_PRECISION[other] or (other == "bfloat16" and not figures.gpu):
        return [fact], []
    finding = Finding(
        name="slower-precision",
        section="steps",
        what=f"{other} is the faster precision on this device",
        cause=f"a matrix product reaches {ceilings[used] / 1e9:,.0f} GFLOP/s in {used}, "
        f"{ceilings[other] / 1e9:,.0f} in {other}",
        setting="training.mixed_precision",
        value=other,
        gain=f"up to {ratio:.1f} times the speed of the matrix products",
    )
    return [fact], [finding]
