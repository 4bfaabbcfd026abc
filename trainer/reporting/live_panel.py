"""The live panel on a terminal: progress, losses, speed and memory."""

from collections import deque

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from xtts.trainer.system.device import memory_used, utilisation_reader

_WINDOW = 500
"""Steps over which percentiles are taken."""


def time_left(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def means(lines: list[dict[str, float]]) -> dict[str, float]:
    """Mean of every number over steps: losses and norms over steps not skipped, rates over the total time."""
    good = [line for line in lines if not line["skipped"]] or lines
    mean = {name: float(np.mean([line[name] for line in good])) for name in lines[0]}
    seconds = np.array([line["step_seconds"] for line in lines])
    waited = seconds * np.array([line["input_wait_share"] for line in lines])
    outside = np.array([line["outside_share"] for line in lines])
    outside = seconds * outside / (1.0 - outside)
    mean["step_seconds"] = float(seconds.mean())
    mean["skipped"] = float(np.mean([line["skipped"] for line in lines]))
    mean["input_wait_share"] = float(waited.sum() / seconds.sum())
    mean["outside_share"] = float(outside.sum() / (outside.sum() + seconds.sum()))
    mean["useful_frames_per_second"] = float(sum(line["useful_frames"] for line in lines) / seconds.sum())
    return mean


class Panel:
    """Shows the newest step; lines printed through the same console stay above it.

    `buckets` is the size of the closed set of shapes, 0 if it is open.
    """

    def __init__(self, console: Console, *, total_steps: int, buckets: int) -> None:
        self.total_steps, self.buckets = total_steps, buckets
        self._seconds: deque[float] = deque(maxlen=_WINDOW)
        self._utilisation = utilisation_reader()
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._live.start()

    def show(self, lines: list[dict[str, float]], *, epoch: int) -> None:
        """Show the last of these lines of metrics.jsonl."""
        self._seconds.extend(line["step_seconds"] for line in lines)
        self._live.update(self._table(lines, epoch))

    def stop(self) -> None:
        """Remove the panel from the terminal."""
        self._live.stop()

    def _table(self, lines: list[dict[str, float]], epoch: int) -> Table:
        mean = means(lines)
        step, seconds = int(lines[-1]["step"]), np.array(self._seconds)
        closed = f"/{self.buckets}" if self.buckets else " so far"
        half, most = 1000 * np.percentile(seconds, [50, 95])
        left = time_left((self.total_steps - step) * float(seconds.mean()))
        table = Table.grid(padding=(0, 2))
        table.add_row(
            f"[bold]step {step:,} of {self.total_steps:,}[/]", f"epoch {epoch}",
            ProgressBar(total=self.total_steps, completed=step, width=40), f"{left} left",
        )  # fmt: skip
        table.add_row(
            f"loss {mean['loss']:.4f}", f"prior {mean['prior']:.4f}",
            f"flow {mean['flow']:.4f}   duration {mean['duration']:.4f}",
            f"lr {lines[-1]['learning_rate']:.2e}   norm {mean['gradient_norm']:.2f}",
        )  # fmt: skip
        table.add_row(
            f"step p50 {half:.0f} ms", f"p95 {most:.0f} ms",
            f"{mean['useful_frames_per_second']:,.0f} useful frames/s   input wait {mean['input_wait_share']:.1%}   "
            f"outside the loop {mean['outside_share']:.1%}",
            f"traces {lines[-1]['traces']:.0f}{closed}   {memory_used()}   {self._utilisation()}",
        )  # fmt: skip
        return table
