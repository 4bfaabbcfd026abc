"""The vocoder, from mel to samples, with the discriminators that train it."""

from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError, build_command
from xtts.trainer.data.batch_sizes import AutomaticSteps
from xtts.trainer.export.export_formats import ONNX
from xtts.trainer.kinds.kind import InitialWeights, Kind
from xtts.trainer.stored.stored_model import StoredModel

if TYPE_CHECKING:
    from xtts.trainer.export.export_formats import ExportRequest
    from xtts.trainer.loop.objectives import VocoderObjective
    from xtts.trainer.model.vocoder import Vocoder
    from xtts.trainer.reporting.vocoder_samples import VocoderSamples


def _check(config: Config, spec: CacheSpec, cache: str) -> None:
    if not spec.holds_crops:
        fix = build_command(cache, config="vocoder")
        raise LockstepError(str(cache), found="whole clips", expected="crops, which train a vocoder", fix=fix)
    if config.training.mixed_precision != "float32":
        problem = f"{config.training.mixed_precision}, in which no vocoder has been tried"
        raise LockstepError("training.mixed_precision", found=problem, expected="float32")


def _network(config: Config, spec: CacheSpec, cache: Path) -> "Vocoder":
    from xtts.trainer.model.vocoder import Vocoder

    return Vocoder(config.vocoder, spec.mel_profile, seed=config.training.seed)


def _objective(network: "Vocoder") -> "VocoderObjective":
    from xtts.trainer.loop.objectives import VocoderObjective

    return VocoderObjective(network)


def _samples(network: "Vocoder", cache: Path, spec: CacheSpec, training: TrainingConfig) -> "VocoderSamples":
    from xtts.trainer.reporting.vocoder_samples import VocoderSamples

    return VocoderSamples(network, cache, spec, training)


def _export(stored: StoredModel, folder: Path, request: "ExportRequest") -> list[str]:
    from xtts.trainer.export.exported_files import export_vocoder

    return export_vocoder(stored, folder, request)


KIND = Kind(
    name="vocoder",
    product="vocoder",
    model_name=lambda _: "vocoder",
    automatic_steps=lambda _: (AutomaticSteps(1, 25_000, 25_000), AutomaticSteps(8, 750, 3_000)),
    check=_check,
    check_start=lambda *_: None,
    default_start=lambda _: None,
    network=_network,
    objective=_objective,
    samples=_samples,
    initial_weights=lambda stored, *_: InitialWeights(averages=stored.averages()),  # it has no tables
    final_formats=[ONNX],
    export=_export,
    measure=lambda *_: None,
    usage=lambda _, product: f"use it:      xtts-synth --vocoder onnx:{product}/vocoder.onnx",
)
