"""The acoustic model, from text to mel: the voice of `xtts-synth`."""

from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.cache.cache_spec import CacheSpec, check_voices, load_voices
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch_sizes import AutomaticSteps
from xtts.trainer.export.export_formats import ONNX, SAFETENSORS
from xtts.trainer.kinds.kind import InitialWeights, Kind
from xtts.trainer.speech.vocoder import OUR_VOICE
from xtts.trainer.stored.checkpoint import ACOUSTIC
from xtts.trainer.stored.stored_json import read_json
from xtts.trainer.stored.stored_model import StoredModel, shared_names, take_rows
from xtts.trainer.stored.voice_description import voice_of

if TYPE_CHECKING:
    from rich.console import Console

    from xtts.trainer.export.export_formats import ExportRequest
    from xtts.trainer.loop.objectives import AcousticObjective
    from xtts.trainer.model.acoustic_model import AcousticModel
    from xtts.trainer.reporting.spoken_samples import SpokenSamples

_SENTENCES = 24
"""Held-out sentences to measure: half a minute on two cores."""


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
            fix=f"build the cache with --set text.tokenizer={reads}{extra}, or train from nothing",
        )  # fmt: skip


def _network(config: Config, spec: CacheSpec, cache: Path) -> "AcousticModel":
    from xtts.trainer.model.acoustic_model import AcousticModel
    from xtts.trainer.model.conditioning import Vocabularies

    mean, deviation = spec.statistics.mel_mean, spec.statistics.mel_deviation
    rows = Vocabularies(spec.vocabulary, speakers=max(len(spec.speakers), 1), languages=len(spec.languages))
    policy = "float32" if config.training.mixed_precision == "float32" else "mixed_bfloat16"
    return AcousticModel(
        config.model, rows, spec.mel_profile, mean=mean, deviation=deviation, dtype_policy=policy,
        seed=config.training.seed,
        voices=load_voices(cache, spec) if config.model.voice_from == "recording" else None,
    )  # fmt: skip


def _objective(network: "AcousticModel") -> "AcousticObjective":
    from xtts.trainer.loop.objectives import AcousticObjective

    return AcousticObjective(network)


def _samples(network: "AcousticModel", cache: Path, spec: CacheSpec, training: TrainingConfig) -> "SpokenSamples":
    from xtts.trainer.reporting.spoken_samples import SpokenSamples

    return SpokenSamples(network, cache, spec, training)


def _initial_weights(stored: StoredModel, network: "AcousticModel", cache: Path, spec: CacheSpec) -> InitialWeights:
    """The averages, with the rows of the tables for this corpus' symbols, speakers and languages."""
    before, now = stored.voice, voice_of(cache, spec)
    initial = {weight.path: weight.numpy() for weight in network.trainable_variables}
    averages = take_rows(stored.averages(), initial, before, now)
    return InitialWeights(averages=averages, reused=shared_names(before, now))


def _export(stored: StoredModel, folder: Path, request: "ExportRequest") -> list[str]:
    from xtts.trainer.export.exported_files import export_voice

    return export_voice(stored, folder, request)


def _measure(stored: StoredModel, folder: Path, data: Path | None, console: "Console") -> None:
    """Measure the voice on held-out sentences, for its card and RUN/evaluation.json, and write its listening page."""
    from xtts.trainer.evaluation.evaluate import evaluate
    from xtts.trainer.evaluation.listening_page import write_listening_page
    from xtts.trainer.export.export_formats import ExportOptions
    from xtts.trainer.export.model_card import write_card
    from xtts.trainer.speech.synthesis_options import SynthesisOptions
    from xtts.trainer.speech.voice_source import Source

    assert stored.run is not None
    figures, source = stored.run.evaluation_file, Source(**vars(stored), model=stored.config().model)
    try:
        evaluate(
            source, SynthesisOptions(), cache=None, split="validation", limit=_SENTENCES, json_file=figures,
            console=console,
        )  # fmt: skip
        write_card(source, folder, stored.run.voice_folder.name, options=ExportOptions(evaluation=figures))
    except LockstepError as error:
        figures.unlink(missing_ok=True)  # of another checkpoint
        console.print(f"no figures: {error}", highlight=False, soft_wrap=True)
    evaluation = read_json(figures, "the figures of a run") if figures.is_file() else {}
    try:
        write_listening_page(source, folder, evaluation=evaluation, data=data)
    except LockstepError as error:
        console.print(f"no listening page: {error}", highlight=False, soft_wrap=True)


def _usage(run: Path, voice: Path) -> str:
    page = voice / "listen.html"
    speak = f"""speak:       xtts-synth --ckpt {run} "A sentence of your own." -o out.wav"""
    return f"{speak}\nhear it:     {page}, in a browser, beside the recordings" if page.is_file() else speak


KIND = Kind(
    name=ACOUSTIC,
    product="voice",
    model_name=lambda config: str(config.model.size),
    automatic_steps=_automatic_steps,
    check=_check,
    check_start=_check_start,
    default_start=lambda config: OUR_VOICE if config.model.size == "tiny" else None,
    network=_network,
    objective=_objective,
    samples=_samples,
    initial_weights=_initial_weights,
    # a model that imitates recordings has no graph
    final_formats=lambda config: [SAFETENSORS] if config.model.voice_from == "recording" else [SAFETENSORS, ONNX],
    export=_export,
    measure=_measure,
    usage=_usage,
)
