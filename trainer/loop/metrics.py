"""Names of the numbers that the steps of a model return, in order."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """The losses of a model, and what one training step returns."""

    weights: Mapping[str, float]
    """Weights of the losses in their sum, by name; in the order of their values."""
    held_out: tuple[str, ...]
    """Names of the losses that validation computes."""
    compared: tuple[str, ...]
    """Losses whose weighted sum decides which checkpoint is best: for an acoustic model the flow. On an hour of speech
    the duration loss rises after a thousand steps, while listeners' figures still improve."""
    second_norm: str
    """Norm of the gradient of the weights that are clipped by themselves."""

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses."""
        return tuple(self.weights)

    @property
    def step(self) -> tuple[str, ...]:
        """Names of the values that a training step returns, float32[len(step)]."""
        return (
            "loss", *self.losses, "gradient_norm", self.second_norm, "learning_rate", "skipped", "useful_frames",
        )  # fmt: skip

    def total(self, losses: Mapping[str, float]) -> float:
        """The weighted sum of losses."""
        return sum(self.weights[name] * loss for name, loss in losses.items())

    def score(self, losses: Mapping[str, float]) -> float:
        """The weighted sum of the compared losses of a validation: the lower, the better."""
        return self.total({name: losses[name] for name in self.compared})


ACOUSTIC = Metrics(
    weights={"prior": 1.0, "flow": 1.0, "duration": 1.0}, held_out=("prior", "flow", "duration"), compared=("flow",),
    second_norm="duration_gradient_norm",
)  # fmt: skip
VOCODER = Metrics(
    weights={"spectrum": 3.0, "mel": 3.0, "pitch": 1.0, "adversary": 1.0, "features": 2.0, "discriminators": 1.0},
    held_out=("spectrum", "mel", "pitch"), compared=("spectrum", "mel", "pitch"),
    second_norm="discriminator_gradient_norm",
)  # fmt: skip
