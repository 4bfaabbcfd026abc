"""The voice that a run ends in: RUN/voice/, exported from its newest checkpoint and measured."""

import shutil
from pathlib import Path

from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.synth.evaluate import evaluate
from xtts.trainer.synth.export.export_command import ONNX, SAFETENSORS, export
from xtts.trainer.synth.export.model_card import write_card
from xtts.trainer.synth.export.onnx_model import ExportOptions
from xtts.trainer.synth.voice_source import open_source
from xtts.trainer.voice.stored_model import open_model
from xtts.trainer.voice.synthesis_options import SynthesisOptions

_SENTENCES = 24
"""Held-out sentences to measure: half a minute on two cores."""


def finish_run(path: Path, console: Console) -> None:
    """Export the newest checkpoint of a run into RUN/voice/, in place of an earlier one, and measure it.

    Weights, ONNX graph, and a card with figures of held-out sentences, which are also in RUN/evaluation.json. A model
    that imitates recordings has no graph, a run of a vocoder only `vocoder.onnx`.

    Raises:
        LockstepError: The folder is no run, or cannot be written.
    """
    stored = open_model(path)
    if stored.run is None:
        raise LockstepError(str(path), found="an exported folder", expected="a run folder")
    folder, config, options = stored.run, stored.config(), SynthesisOptions()
    formats = [ONNX] if config.vocoder else [SAFETENSORS] if config.model.voice_latents else [SAFETENSORS, ONNX]
    shutil.rmtree(folder.voice_folder, ignore_errors=True)
    export(stored.checkpoint, folder.voice_folder, options, formats=formats, options=ExportOptions())
    if config.vocoder is not None:
        return
    try:
        evaluate(
            stored.checkpoint, options, cache=None, split="validation", limit=_SENTENCES,
            json_file=folder.evaluation_file, console=console,
        )  # fmt: skip
    except LockstepError as error:
        console.print(f"no figures: {error}", highlight=False, soft_wrap=True)
    else:
        card = ExportOptions(evaluation=folder.evaluation_file)
        write_card(open_source(stored.checkpoint), folder.voice_folder, folder.voice_folder.name, options=card)
