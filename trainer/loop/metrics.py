"""Names of the numbers that the steps of a model return, in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """The losses of a model, and what one training step returns."""

    weights: Mapping[str, float]
    """Weights of the losses in their sum, by name; in the order of their values."""
    held_out: tuple[str, ...]
    """Names of the losses that validation computes."""
    compared: tuple[str, ...]
    """Losses whose weighted sum decides which checkpoint is best."""
    clipped_apart: Mapping[str, str] = field(default_factory=dict)
    """Weights whose gradient is clipped by itself, because none flows from them into the others: a part of their paths,
    by the name of that gradient's norm."""

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses."""
        return tuple(self.weights)

    @property
    def step(self) -> tuple[str, ...]:
        """Names of the values that a training step returns, float32[len(step)]."""
        return (
            "loss", *self.losses, "gradient_norm", *self.clipped_apart, "learning_rate", "skipped", "useful_frames",
        )

    def total(self, losses: Mapping[str, float]) -> float:
        """The weighted sum of losses."""
        return sum(self.weights[name] * loss for name, loss in losses.items())

    def score(self, losses: Mapping[str, float]) -> float:
        """The weighted sum of the compared losses of a validation: the lower, the better."""
        return self.total({name: losses[name] for name in self.compared})
