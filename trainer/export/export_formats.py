"""The formats of an export, and what it is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xtts.trainer.speech.synthesis_options import SynthesisOptions

SAVED_MODEL, SAFETENSORS, ONNX, PIPER = "saved-model", "safetensors", "onnx", "piper"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What an export writes in addition to the model."""

    float16: bool = False
    """Store weights as float16; a runtime converts them to float32 when it loads a graph."""
    language: str | None = None
    """Language to fix in the graph of a model of several."""
    speaker_wav: tuple[Path, ...] = ()
    """References of a model with voice latents, whose mean is fixed in the graph."""
    license: str | None = None
    """For the model card, as what follows."""
    evaluation: Path | None = None
    """JSON of `xtts-synth evaluate`."""
    about: Path | None = None
    """Markdown after the first lines of the card: the speaker, the source of the recordings, the making."""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """An export that was asked for."""

    out: Path
    """Folder to write."""
    formats: Sequence[str]
    synthesis: SynthesisOptions = field(default_factory=SynthesisOptions)
    """Evaluations and solver of a SavedModel, and of an ONNX graph where the schedule is left out."""
    options: ExportOptions = ExportOptions()
    vocoder: Path | None = None
    """Its ONNX file; None for that of `find_vocoder`."""
