"""The vocoder, from mel to samples, with the discriminators that train it."""

from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError, build_command
from xtts.trainer.data.batch_sizes import AutomaticSteps
from xtts.trainer.models.kind import Kind

if TYPE_CHECKING:
    from xtts.trainer.models.vocoder.samples import VocoderSamples
    from xtts.trainer.models.vocoder.vocoder import Vocoder, VocoderObjective


def _check(config: Config, spec: CacheSpec, cache: str) -> None:
    if not spec.holds_crops:
        fix = build_command(cache, config="vocoder")
        raise LockstepError(str(cache), found="whole clips", expected="crops, which train a vocoder", fix=fix)
    if config.training.mixed_precision != "float32":
        problem = f"{config.training.mixed_precision}, in which no vocoder has been tried"
        raise LockstepError("training.mixed_precision", found=problem, expected="float32")


def _objective(config: Config, spec: CacheSpec, cache: Path) -> "VocoderObjective":
    from xtts.trainer.models.vocoder.vocoder import Vocoder, VocoderObjective

    return VocoderObjective(Vocoder(config.vocoder, spec.mel_profile, seed=config.training.seed))


def _samples(network: "Vocoder", cache: Path, spec: CacheSpec, training: TrainingConfig) -> "VocoderSamples":
    from xtts.trainer.models.vocoder.samples import VocoderSamples

    return VocoderSamples(network, cache, spec, training)


KIND = Kind(
    name="vocoder",
    automatic_steps=lambda _: (AutomaticSteps(1, 25_000, 25_000), AutomaticSteps(8, 750, 3_000)),
    check=_check,
    objective=_objective,
    samples=_samples,
)
