"""The steps of one host call."""

from dataclasses import dataclass, field

import numpy as np

from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.training_loop import CallResult


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """The steps of one host call, as hooks get them."""

    first_step: int
    """Number of the first step, from 1."""
    result: CallResult
    metrics: Metrics
    """Names of the values of a step."""
    outside_seconds: float
    """Seconds before the call without steps (validation, samples, checkpoints), plus the overhead of the call."""
    traces: int
    """Traces of training steps so far."""
    epoch: int
    """Epoch of the last step, from 0."""
    validation: dict[str, float] = field(default_factory=dict)
    """Losses of a validation after the last step; empty without one."""

    @property
    def last_step(self) -> int:
        """Number of the last step."""
        return self.first_step + len(self.result.metrics) - 1

    def rows(self) -> list[dict[str, float]]:
        """The lines of metrics.jsonl, one for each step."""
        seconds, outside = self.result.step_seconds, self.outside_seconds / max(len(self.result.metrics), 1)
        columns = {
            "step_seconds": seconds,
            "input_wait_share": self.result.wait_seconds / seconds,
            "outside_share": outside / (outside + seconds),
            "useful_frames_per_second": self.column("useful_frames") / seconds,
        }
        return [
            {
                "step": self.first_step + i,
                **{name: float(value) for name, value in zip(self.metrics.step, values, strict=True)},
                **{name: float(column[i]) for name, column in columns.items()},
                "traces": self.traces,
                **({} if self.result.unread is None else {"unread_clips": float(self.result.unread[i].sum())}),
            }
            for i, values in enumerate(self.result.metrics)
        ]

    def column(self, name: str) -> np.ndarray:
        """float32[n]: one metric of every step."""
        return self.result.metrics[:, self.metrics.step.index(name)]
