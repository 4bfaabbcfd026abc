"""Keeps track of the best validation."""

import math
from typing import Any


class Best:
    """The best validation so far, and how many have come since."""

    def __init__(self, step: int | None = None, loss: float = math.inf, since: int = 0) -> None:
        self.step, self.loss, self.since = step, loss, since

    def note(self, step: int, loss: float) -> bool:
        """Record a validation; True if it is the best so far."""
        if loss < self.loss:
            self.step, self.loss, self.since = step, loss, 0
            return True
        self.since += 1
        return False

    def as_json(self) -> dict[str, float | int | None]:
        """The record as a checkpoint stores it."""
        return {"step": self.step, "loss": self.loss if math.isfinite(self.loss) else None, "since": self.since}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Best":
        """The record stored in a checkpoint."""
        return cls(saved["step"], math.inf if saved["loss"] is None else saved["loss"], saved["since"])
