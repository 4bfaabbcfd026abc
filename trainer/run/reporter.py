"""Output of a run: metrics.jsonl, TensorBoard, lines on the terminal."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.loop.chunk import Chunk
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.models.samples import Samples
from xtts.trainer.stored.run_folder import RunFolder

if TYPE_CHECKING:
    from xtts.trainer.run.tensorboard import TensorBoard


class Reporter:
    """Writes what happens to metrics.jsonl, TensorBoard and the terminal."""

    def __init__(
        self, run: RunFolder, console: Console, metrics: Metrics, *, total_steps: int, log_every: int,
        tensorboard: "TensorBoard | None" = None,
    ) -> None:
        """tensorboard: None where TensorFlow is not installed."""
        self.console, self.metrics, self.log_every = console, metrics, log_every
        self.total_steps = total_steps
        """Step at which the run is expected to end."""
        self._metrics = open(run.metrics_file, "a", encoding="utf-8")
        self._tensorboard = tensorboard
        self._kept: list[Chunk] = []
        self._pending: list[dict[str, float]] = []
        self._spent = np.zeros(4)

    def keep(self, chunk: Chunk) -> None:
        """Hold the steps of a call until the next one runs: the device does not wait for the terminal."""
        self._kept.append(chunk)

    def flush(self) -> None:
        """Record the held steps."""
        while self._kept:
            self.record(self._kept.pop())

    def record(self, chunk: Chunk) -> None:
        """Record the steps of one call; log every `log_every` steps."""
        lines = chunk.rows()
        self._write([{"split": "train", **line} for line in lines])
        for line in lines:
            self._spent += _spent(line)
            self._pending.append(line)
            if line["step"] % self.log_every == 0 or line["step"] == self.total_steps:
                self._log()

    def _write(self, lines: Sequence[Mapping[str, str | float]]) -> None:
        rows = [{k: v if isinstance(v, str) or math.isfinite(v) else None for k, v in line.items()} for line in lines]
        try:
            self._metrics.writelines(json.dumps(row) + "\n" for row in rows)
            self._metrics.flush()
        except OSError as error:
            raise LockstepError(
                self._metrics.name, found=f"cannot be written ({error.strerror})", fix="free the disk and resume"
            ) from None

    def _curves(self, step: int, split: str, values: Mapping[str, float]) -> None:
        if self._tensorboard:
            self._tensorboard.scalars(step, {f"{split}/{name}": value for name, value in values.items()})

    def _log(self) -> None:
        """Log the pending steps; a loss of 0 belongs to a module that the model lacks, and is omitted."""
        last, mean = self._pending[-1], means(self._pending)
        step = int(last["step"])
        shown = {k: v for k, v in mean.items() if k != "step" and (v or k not in self.metrics.losses)}
        self._curves(step, "train", shown)
        losses = "  ".join(f"{name} {mean[name]:.3f}" for name in self.metrics.losses if mean[name])
        self._pending = []
        left = timedelta(seconds=round((self.total_steps - step) * mean["step_seconds"]))
        self.console.print(
            f"step {step:>{len(str(self.total_steps))}}/{self.total_steps}  loss {mean['loss']:.4f}  {losses}  "
            f"lr {last['learning_rate']:.1e}  norm {mean['gradient_norm']:.2f}  "
            f"{1000 * mean['step_seconds']:.0f} ms/step  {mean['useful_frames_per_second']:,.0f} frames/s  "
            f"input wait {100 * mean['input_wait_share']:.1f}%  outside {100 * mean['outside_share']:.1f}%  "
            f"traces {last['traces']}  {left} left",
            highlight=False,
        )

    def validation(self, step: int, losses: dict[str, float], total: float, *, skipped: int) -> None:
        """Record a validation; skipped: number of batches skipped because they were not finite."""
        self.flush()
        self._write([{"split": "validation", "step": step, "loss": total, **losses, "skipped": skipped}])
        self._curves(step, "validation", {k: v for k, v in {"loss": total, **losses}.items() if v})
        shown = "  ".join(f"{name} {value:.3f}" for name, value in losses.items() if value)
        self.console.print(f"[bold]validation[/bold] at step {step}: loss {total:.4f}  {shown}", highlight=False)

    def recordings(self, samples: Samples) -> None:
        """Add the sentences and their recordings, before the first step."""
        if self._tensorboard:
            self._tensorboard.show(0, samples.recordings(), samples.profile)

    def samples(self, step: int, samples: Samples, spoken: list[Any], *, began: float) -> None:
        """Record the fixed sentences spoken at a step; began: `time.perf_counter()` before they were spoken."""
        self.flush()
        if not samples.finite(spoken):
            self.say(f"samples at step {step} skipped (the model's output is not finite)")
            return
        figures, summary = samples.measure(spoken)
        self._curves(step, "evaluation", figures)
        if self._tensorboard:
            self._tensorboard.show(step, samples.show(spoken), samples.profile)
        seconds = time.perf_counter() - began
        self._write([{"split": "evaluation", "step": step, **figures, "sentences": len(spoken), "seconds": seconds}])
        self.console.print(f"[bold]samples[/bold] at step {step}: {summary} ({seconds:.1f} s)", highlight=False)

    def say(self, line: str) -> None:
        """Print a plain line, after the held steps."""
        self.flush()
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def device(self, step: int) -> None:
        """Record and say in which shares of the time up to the last step the device had nothing to do."""
        self.flush()
        seconds, waiting, outside, frames = self._spent.tolist()
        if whole := seconds + outside:
            shares = {"input_wait_share": waiting / whole, "outside_share": outside / whole}
            self._write([{"split": "device", "step": step, **shares, "useful_frames_per_second": frames / whole}])
            self.say(
                f"the device waited for batches in {waiting / whole:.1%} of the time, and for validations, samples and "
                f"checkpoints in {outside / whole:.1%}: {frames / whole:,.0f} useful frames/s in all"
            )

    def close(self) -> None:
        """Flush everything."""
        with suppress(OSError):  # a failed write of the buffered lines was already reported
            self._metrics.close()
        if self._tensorboard:
            self._tensorboard.close()


class SilentReporter(Reporter):
    """The reporter of the other processes: rank 0 has the same numbers, and reports them."""

    def __init__(self) -> None:
        """Open nothing."""

    def _ignore(self, *_: object, **__: object) -> None:
        """Report nothing."""

    keep = flush = validation = say = device = close = _ignore


def means(lines: list[dict[str, float]]) -> dict[str, float]:
    """Mean of every number over steps: losses and norms over steps not skipped, rates over the total time."""
    good = [line for line in lines if not line["skipped"]] or lines
    mean = {name: float(np.mean([line[name] for line in good])) for name in lines[0]}
    mean["skipped"] = float(np.mean([line["skipped"] for line in lines]))
    seconds, waiting, outside, frames = np.sum([_spent(line) for line in lines], axis=0).tolist()
    return mean | {
        "step_seconds": seconds / len(lines), "input_wait_share": waiting / seconds,
        "outside_share": outside / (outside + seconds), "useful_frames_per_second": frames / seconds,
    }


def _spent(line: Mapping[str, float]) -> np.ndarray:
    """Seconds of a step, of these waiting for its batch, and outside of it; useful frames: float64[4]."""
    seconds, outside = line["step_seconds"], line["outside_share"]
    seconds_outside = seconds * outside / (1.0 - outside)
    return np.array([seconds, seconds * line["input_wait_share"], seconds_outside, line["useful_frames"]])
