"""Pauses between the calls of the graph: validation, samples and checkpoints, measured once each."""

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from xtts.shared.config import TrainingConfig
from xtts.trainer.doctor.finding import Fact, Finding, Result
from xtts.trainer.doctor.workload import Workload
from xtts.trainer.engine.schedule import host_marks
from xtts.trainer.reporting.reporter import Reporter
from xtts.trainer.reporting.run_folder import RunFolder
from xtts.trainer.reporting.spoken_samples import Samples
from xtts.trainer.run.checkpoint import describe, save_checkpoint

_TOLERATED = 0.02
"""Share of a run's time that may be spent outside the training loop."""
_NAMES = {
    "training.validate_every": "validation",
    "training.samples_every": "samples",
    "training.checkpoint_every": "a checkpoint",
}


def measure_pauses(workload: Workload) -> dict[str, float]:
    """Seconds of each pause, by the setting for its interval; files go to a temporary folder."""
    subject, state, validation = workload.subject, workload.state, workload.validation
    samples = Samples(state.model, subject.cache, subject.spec, subject.config.training)
    with tempfile.TemporaryDirectory(prefix="lockstep-doctor-") as name:
        folder = RunFolder(Path(name))
        reporter = Reporter(folder, Console(quiet=True), total_steps=1, log_every=1, buckets=0)

        def speak() -> None:
            reporter.samples(0, samples, samples.speak(), began=time.perf_counter())

        def save() -> None:
            identity = describe(subject.config, subject.spec)
            save_checkpoint(folder.checkpoints, state.arrays(), step=0, identity=identity, progress={})

        pauses: dict[str, Callable[[], object]] = {"training.checkpoint_every": save}
        if not validation.empty:
            pauses["training.validate_every"] = validation.run
        if not samples.empty:
            pauses["training.samples_every"] = speak
        seconds = {setting: _second_time(pause) for setting, pause in pauses.items()}
        reporter.close()
    return seconds


def _second_time(pause: Callable[[], object]) -> float:
    pause()  # compiles
    began = time.perf_counter()
    pause()
    return time.perf_counter() - began


def pauses(seconds: Mapping[str, float], training: TrainingConfig, *, step_seconds: float) -> Result:
    """The share of a run spent outside its training loop, and which interval to lengthen.

    seconds: length of each pause, by setting, step_seconds: mean of a step.
    """
    every = {setting: steps for setting, steps in host_marks(training).items() if setting in seconds}
    a_step = {setting: seconds[setting] / steps for setting, steps in every.items()}
    share = sum(a_step.values()) / (sum(a_step.values()) + step_seconds)
    parts = ", ".join(f"{_NAMES[name]} {seconds[name]:.1f} s every {every[name]:,} steps" for name in every)
    fact = Fact(name="outside the loop", value={"share": share, "seconds": dict(seconds)},
                text=f"{share:.1%} of a run: {parts}")  # fmt: skip
    if share <= _TOLERATED:
        return [fact], []
    setting = max(a_step, key=a_step.__getitem__)
    others = sum(a_step.values()) - a_step[setting]
    # What the other pauses leave of the tolerated share, but at least half of it.
    room = max(_TOLERATED * step_seconds / (1 - _TOLERATED) - others, _TOLERATED * step_seconds / 2)
    steps = -(-int(seconds[setting] / room + 1) // 50) * 50
    finding = Finding(
        name="long-pauses",
        section="steps",
        what=f"{share:.1%} of a run is spent outside its training loop",
        cause=f"{_NAMES[setting]} takes {seconds[setting]:.1f} s every {every[setting]:,} steps of "
        f"{1000 * step_seconds:.0f} ms",
        setting=setting,
        value=steps,
        gain=f"{1 + a_step[setting] / step_seconds:.2f} times the steps a second",
    )
    return [fact], [finding]
