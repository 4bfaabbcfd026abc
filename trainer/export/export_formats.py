"""The formats of an export, and its options."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xtts.trainer.speech.synthesis_options import SynthesisOptions

SAFETENSORS, ONNX, PIPER = "safetensors", "onnx", "piper"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of the files that an export writes."""

    float16: bool = False
    """Store weights as float16; a runtime converts them to float32 when it loads a graph."""
    language: str | None = None
    """Language to fix in the graph of a model of several."""
    speaker_wav: tuple[Path, ...] = ()
    """Recordings for a model that imitates, whose voice is fixed in the graph; none for a graph that takes a voice."""
    license: str | None = None
    """Licence, for the model card, as the fields below are."""
    evaluation: Path | None = None
    """JSON of `xtts-synth evaluate`."""
    about: Path | None = None
    """Markdown after the first lines of the card: the speaker, the source of the recordings, the making."""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A requested export."""

    out: Path
    """Folder to write."""
    formats: Sequence[str]
    synthesis: SynthesisOptions = field(default_factory=SynthesisOptions)
    """Evaluations and solver of a graph that is called without a schedule."""
    options: ExportOptions = ExportOptions()
    vocoder: Path | None = None
    """ONNX file of the vocoder; None for that of `find_vocoder`."""
