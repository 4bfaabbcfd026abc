"""Tracks the validations: which was best, and which held-out losses rise while the training losses fall."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

RISING_VALIDATIONS, RISE = 3, 1.02
"""A held-out loss rises once its lowest value is this many validations old, and it has grown by this factor since."""
REMEDY = "more recordings help most, then a higher model.dropout, fewer steps, or xtts-synth --best"


@dataclass
class Best:
    """The best validation so far, as a checkpoint stores it."""

    step: int | None = None
    loss: float | None = None
    """None before the first validation."""
    since: int = 0
    """Validations since then."""

    def note(self, step: int, loss: float) -> bool:
        """Record a validation; True if it is the best so far."""
        if loss < (math.inf if self.loss is None else self.loss):
            self.step, self.loss, self.since = step, loss, 0
            return True
        self.since += 1
        return False


class _Lowest(NamedTuple):
    step: int
    held_out: float
    trained: float
    age: int


class Overfitting:
    """Losses that rise on held-out clips while they fall in training, each of them named once."""

    def __init__(self, losses: Sequence[str]) -> None:
        """losses: names of the losses that validation computes."""
        self._losses = losses
        self._lowest: dict[str, _Lowest] = {}
        self._named: set[str] = set()

    def note(self, step: int, held_out: Mapping[str, float], trained: Mapping[str, float]) -> Iterator[str]:
        """Record a validation and the mean losses of the steps before it; yield a line for each loss that rises.

        Losses that are not finite are ignored.
        """
        for name, loss in held_out.items():
            if not math.isfinite(loss + trained[name]):
                continue
            lowest = self._lowest.get(name)
            if lowest is None or loss < lowest.held_out:
                self._lowest[name] = _Lowest(step, loss, trained[name], 0)
                continue
            lowest = self._lowest[name] = lowest._replace(age=lowest.age + 1)
            rises = lowest.age >= RISING_VALIDATIONS and loss > RISE * lowest.held_out
            if rises and trained[name] < lowest.trained and name not in self._named:
                self._named.add(name)
                yield (
                    f"the held-out {name} loss rises ({lowest.held_out:.3f} at step {lowest.step}, {loss:.3f} at step "
                    f"{step}) while the training loss falls"
                )

    def replay(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Yield the lines of `note` for every validation in `metrics.jsonl`; rows: its parsed lines."""
        trained: list[list[float]] = []
        for row in rows:
            if row["split"] not in ("train", "validation"):
                continue
            losses = [math.nan if row.get(name) is None else row[name] for name in self._losses]  # or added since
            if row["split"] == "train":
                trained.append(losses)
            elif trained:
                held_out = dict(zip(self._losses, losses, strict=True))
                yield from self.note(row["step"], held_out, mean_losses(self._losses, trained))
                trained = []


def mean_losses(names: Sequence[str], trained: Sequence[Sequence[float]]) -> dict[str, float]:
    """Mean of each named loss over the steps in which all were finite; NaN without any."""
    finite = [losses for losses in trained if all(map(math.isfinite, losses))]
    return {name: sum(losses[i] for losses in finite) / len(finite) if finite else math.nan
            for i, name in enumerate(names)}
