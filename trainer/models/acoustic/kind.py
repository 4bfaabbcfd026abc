"""The acoustic model, from text to mel: the voice of `xtts-synth`."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec, check_voices, load_voices
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch_sizes import AutomaticSteps
from xtts.trainer.models.kind import Kind
from xtts.trainer.speech.vocoder import OUR_VOICE
from xtts.trainer.stored.checkpoint import ACOUSTIC
from xtts.trainer.stored.run_folder import voice_of
from xtts.trainer.stored.stored_model import StoredModel, take_rows

if TYPE_CHECKING:
    from xtts.trainer.models.acoustic.acoustic_model import AcousticModel
    from xtts.trainer.models.acoustic.objective import AcousticObjective
    from xtts.trainer.models.acoustic.samples import SpokenSamples


def _automatic_steps(config: Config) -> tuple[AutomaticSteps, AutomaticSteps]:
    if config.model.size == "tiny":
        return AutomaticSteps(40, 1_500, 20_000), AutomaticSteps(12, 600, 20_000, most_epochs=150)
    return AutomaticSteps(500, 20_000, 500_000), AutomaticSteps(500, 20_000, 500_000)


def _check(config: Config, spec: CacheSpec, cache: str) -> None:
    if spec.holds_crops:
        raise LockstepError(str(cache), found="crops, which train a vocoder", fix="train with --config vocoder")
    if config.model.voice_from == "recording":
        check_voices(spec, cache)


def _check_start(stored: StoredModel, spec: CacheSpec) -> None:
    reads, given = stored.voice.tokenizer.kind, spec.features["text"]["tokenizer"]
    if reads != given:
        extra = " (extra phonemes)" if reads == "phonemes" else ""
        found, expected = f"a model that reads {reads}", f"{given}, as in the cache"
        raise LockstepError(
            f"--init-from {stored.checkpoint}", found=found, expected=expected,
            fix=f"build the cache with --set text.tokenizer={reads}{extra}, or train from scratch",
        )


def _objective(config: Config, spec: CacheSpec, cache: Path) -> "AcousticObjective":
    from xtts.trainer.models.acoustic.acoustic_model import AcousticModel
    from xtts.trainer.models.acoustic.networks import Vocabularies
    from xtts.trainer.models.acoustic.objective import AcousticObjective

    mean, deviation = spec.statistics.mel_mean, spec.statistics.mel_deviation
    rows = Vocabularies(spec.vocabulary, speakers=max(len(spec.speakers), 1), languages=len(spec.languages))
    policy = "float32" if config.training.mixed_precision == "float32" else "mixed_bfloat16"
    return AcousticObjective(AcousticModel(
        config.model, rows, spec.mel_profile, mean=mean, deviation=deviation, dtype_policy=policy,
        seed=config.training.seed,
        voices=load_voices(cache, spec) if config.model.voice_from == "recording" else None,
    ))


def _samples(network: "AcousticModel", cache: Path, spec: CacheSpec, training: TrainingConfig) -> "SpokenSamples":
    from xtts.trainer.models.acoustic.samples import SpokenSamples

    return SpokenSamples(network, cache, spec, training)


def _initial_weights(
    stored: StoredModel, network: "AcousticModel", cache: Path, spec: CacheSpec
) -> dict[str, np.ndarray]:
    """The averages, with the rows of the tables for this corpus' symbols, speakers and languages."""
    before, now = stored.voice, voice_of(cache, spec)
    initial = {weight.path: weight.numpy() for weight in network.trainable_variables}
    return take_rows(stored.averages(), initial, before, now)


KIND = Kind(
    name=ACOUSTIC,
    model_name=lambda config: str(config.model.size),
    automatic_steps=_automatic_steps,
    check=_check,
    check_start=_check_start,
    default_start=lambda config: OUR_VOICE if config.model.size == "tiny" else None,
    objective=_objective,
    samples=_samples,
    initial_weights=_initial_weights,
)
