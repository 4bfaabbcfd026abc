"""Names of the numbers that the steps of a model return, in order."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xtts.shared.config import Config


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """The losses of a model, and what one training step returns."""

    losses: tuple[str, ...]
    weights: tuple[float, ...]
    """Weights of the losses in their sum."""
    held_out: tuple[str, ...]
    """Names of the losses that validation computes."""
    compared: tuple[str, ...]
    """Those whose weighted sum decides which checkpoint is best: for an acoustic model the flow. On an hour of speech
    the duration loss rises after a thousand steps, while listeners' figures still improve."""
    second_norm: str
    """Norm of the gradient of the weights that are clipped by themselves."""

    @property
    def step(self) -> tuple[str, ...]:
        """Names of the values that a training step returns, float32[len(step)]."""
        return (
            "loss", *self.losses, "gradient_norm", self.second_norm, "learning_rate", "skipped", "useful_frames",
        )  # fmt: skip

    def total(self, losses: Mapping[str, float]) -> float:
        """The weighted sum of losses."""
        weights = dict(zip(self.losses, self.weights, strict=True))
        return sum(weights[name] * loss for name, loss in losses.items())

    def score(self, losses: Mapping[str, float]) -> float:
        """The weighted sum of the compared losses of a validation: the lower, the better."""
        return self.total({name: losses[name] for name in self.compared})


ACOUSTIC = Metrics(
    losses=("prior", "flow", "duration"), weights=(1.0, 1.0, 1.0), held_out=("prior", "flow", "duration"),
    compared=("flow",), second_norm="duration_gradient_norm",
)  # fmt: skip
VOCODER = Metrics(
    losses=("spectrum", "mel", "pitch", "adversary", "features", "discriminators"),
    weights=(3.0, 3.0, 1.0, 1.0, 2.0, 1.0), held_out=("spectrum", "mel", "pitch"),
    compared=("spectrum", "mel", "pitch"), second_norm="discriminator_gradient_norm",
)  # fmt: skip


def metrics_of(config: Config) -> Metrics:
    """The metrics of the model that a configuration trains."""
    if config.vocoder is not None:
        return VOCODER
    return replace(ACOUSTIC, weights=(1.0, 1.0, config.training.duration_loss_weight))
