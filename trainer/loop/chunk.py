"""The steps of one host call, without TensorFlow."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from xtts.trainer.loop.metrics import Metrics

StoredBatch = tuple[int, list[tuple[int, int]]]
"""Clips of a batch: the number of their bucket, and the (shard, record) of each."""


class CallResult(NamedTuple):
    """Result of one host call: n steps, fewer than requested after a stop."""

    metrics: np.ndarray
    """float32[n, N]: the values of each step, as `Metrics.step` names them."""
    seconds: np.ndarray
    """float64[n, 3]: seconds from the arrival of the last step's metrics to that of this one's, split into the
    loop's own work, the wait for the batch, and the step. Work and waiting behind a running step are not counted."""
    buckets: np.ndarray
    """int32[n]: index of each step's bucket among those of the loop."""
    offsets: np.ndarray
    """int64[n]: clips of that bucket consumed before the step."""
    wall: float
    """Seconds of the whole call, measured on the host."""
    stopped: bool = False
    """True if a stop, in any process, ended the call."""

    @property
    def step_seconds(self) -> np.ndarray:
        """float64[n]: seconds from the end of one step to the end of the next."""
        return np.asarray(self.seconds.sum(axis=1))

    @property
    def wait_seconds(self) -> np.ndarray:
        """float64[n]: seconds of `step_seconds` spent waiting for the input pipeline."""
        return self.seconds[:, 1]


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
            }
            for i, values in enumerate(self.result.metrics)
        ]

    def column(self, name: str) -> np.ndarray:
        """float32[n]: one metric of every step."""
        return self.result.metrics[:, self.metrics.step.index(name)]
