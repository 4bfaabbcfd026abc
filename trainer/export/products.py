"""What each kind of model leaves at the end of a run, and as what it is exported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.config import Config
from xtts.shared.errors import LockstepError, read_json
from xtts.trainer.export.export_formats import ONNX, SAFETENSORS, ExportOptions, ExportRequest
from xtts.trainer.export.exported_files import export_vocoder, export_voice, write_description
from xtts.trainer.export.model_card import save_weights, write_card
from xtts.trainer.stored.checkpoint import ACOUSTIC
from xtts.trainer.stored.stored_model import StoredModel

if TYPE_CHECKING:
    from rich.console import Console

_SENTENCES = 24
"""Held-out sentences to measure: half a minute on two cores."""


def _export_weights(stored: StoredModel, folder: Path, request: ExportRequest) -> list[str]:
    save_weights(stored, folder, options=request.options)
    write_description(stored, folder)
    return [f"safetensors: xtts-train --init-from {request.out}"]


@dataclass(frozen=True, kw_only=True)
class Product:
    """What becomes of a model; unless stated otherwise, its weights are exported as safetensors, to train on with."""

    final_formats: Sequence[str] = (SAFETENSORS,)
    """Formats of `xtts-synth export` in which a run leaves it in RUN/voice/."""
    export: Callable[[StoredModel, Path, ExportRequest], list[str]] = _export_weights
    """Writes the files of an export into a folder; returns a description of each format."""
    measure: "Callable[[StoredModel, Path, Path | None, Console], None]" = lambda *_: None
    """Measures the product of a run, exported into a folder, for its card and its listening page; the third argument is
    the folder of the corpus, if known."""
    usage: Callable[[Path, Path], str] = lambda _, product: f"train on:    xtts-train --init-from {product}"
    """The line that says how to use it, from the run's folder and the product's."""


def _measure_voice(stored: StoredModel, folder: Path, data: Path | None, console: "Console") -> None:
    """Measure the voice on held-out sentences, for its card and RUN/evaluation.json, and write its listening page."""
    from xtts.trainer.evaluation.evaluate import evaluate
    from xtts.trainer.evaluation.listening_page import write_listening_page
    from xtts.trainer.speech.synthesis_options import SynthesisOptions
    from xtts.trainer.speech.voice_source import open_source

    assert stored.run is not None
    figures = stored.run.evaluation_file
    try:
        evaluate(
            stored, lambda: open_source(folder), SynthesisOptions(), cache=None, split="validation", limit=_SENTENCES,
            json_file=figures, console=console,
        )
        write_card(stored, folder, stored.run.voice_folder.name, options=ExportOptions(evaluation=figures))
    except LockstepError as error:
        figures.unlink(missing_ok=True)  # of another checkpoint
        console.print(f"no figures: {error}", highlight=False, soft_wrap=True)
    evaluation = read_json(figures, "the figures of a run") if figures.is_file() else {}
    try:
        write_listening_page(stored, folder, evaluation=evaluation, data=data)
    except LockstepError as error:
        console.print(f"no listening page: {error}", highlight=False, soft_wrap=True)


def _voice_usage(run: Path, voice: Path) -> str:
    page = voice / "listen.html"
    speak = f"""speak:       xtts-synth --ckpt {run} "A sentence of your own." -o out.wav"""
    return f"{speak}\nhear it:     {page}, in a browser, beside the recordings" if page.is_file() else speak


PRODUCTS = {
    ACOUSTIC: Product(
        final_formats=(SAFETENSORS, ONNX), export=export_voice, measure=_measure_voice, usage=_voice_usage,
    ),
    "vocoder": Product(
        final_formats=(ONNX,), export=export_vocoder,
        usage=lambda _, product: f"use it:      xtts-synth --vocoder onnx:{product}/vocoder.onnx",
    ),
}
"""By kind of model; a kind that is not named leaves its weights."""


def product_of(config: Config) -> Product:
    """The product of the kind of model that a configuration trains."""
    return PRODUCTS.get(config.training.kind, Product())
