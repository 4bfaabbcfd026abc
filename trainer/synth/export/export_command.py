"""`xtts-synth export`: a SavedModel, weights to pass on, an ONNX graph, several in one folder, or a Piper voice."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from xtts.shared.cache.cache_spec import TOKENIZER_FILE
from xtts.shared.errors import LockstepError
from xtts.trainer.synth.export.model_card import save_weights, write_card_folder
from xtts.trainer.synth.export.onnx_model import ExportOptions, save_onnx
from xtts.trainer.synth.export.piper_voice import save_piper
from xtts.trainer.synth.export.saved_model import save_model
from xtts.trainer.synth.output_files import new_folder
from xtts.trainer.synth.voice_source import Source, open_source
from xtts.trainer.vocoders.vocoder import VOCODER_FILE, find_vocoder, make_vocoder
from xtts.trainer.voice.stored_model import StoredModel, open_model
from xtts.trainer.voice.synthesis_options import SynthesisOptions

PROFILE_FILE = "profile.json"
SAVED_MODEL, SAFETENSORS, ONNX, PIPER = "saved-model", "safetensors", "onnx", "piper"


def export(
    checkpoint: Path, out: Path, synthesis: SynthesisOptions, *, formats: Sequence[str], options: ExportOptions,
    vocoder: Path | None = None,
) -> None:  # fmt: skip
    """Write `out/` atomically: what the formats write, the vocoder, `tokenizer.json` and `profile.json`.

    A run of a vocoder is written as `vocoder.onnx`, or as safetensors to train on with, a Piper voice as the files of
    `save_piper` alone.

    synthesis: evaluations and solver of a SavedModel, and of an ONNX graph where the schedule is left out; vocoder: an
    ONNX file, None for that of `find_vocoder`.

    Raises:
        LockstepError: OUT is already there or cannot be written, or the model cannot be exported so.
    """
    if PIPER in formats and len(set(formats)) > 1:
        found = f"together with {' and '.join(sorted({*formats} - {PIPER}))}"
        raise LockstepError(
            "--format piper", found=found, expected="alone: Home Assistant takes each graph for a voice"
        )
    with new_folder(out) as partial:
        stored = open_model(checkpoint)
        if stored.config().vocoder is not None:
            if vocoder is not None:
                raise LockstepError("--vocoder", found=f"for {checkpoint}, a vocoder itself", expected="a voice")
            if SAFETENSORS in formats:
                save_weights(stored, partial, options=options)
                (partial / TOKENIZER_FILE).write_bytes(stored.voice.tokenizer.to_bytes())
                described = [f"safetensors: xtts-train --config vocoder --init-from {out}"]
            else:
                described = [save_vocoder(stored, partial / VOCODER_FILE)]
        else:
            source, name = open_source(checkpoint), out.resolve().name
            file = vocoder or find_vocoder(source.voice.mel_profile, source.checkpoint)
            if PIPER in formats:
                described = [save_piper(source, partial, name, vocoder=file, synthesis=synthesis, options=options)]
            else:
                if vocoder is not None:
                    make_vocoder(f"onnx:{vocoder}", source.voice.mel_profile, click.echo)  # refuses another profile's
                if file is not None:
                    shutil.copyfile(file, partial / VOCODER_FILE)
                described = _write_voice(source, partial, out, synthesis, formats=formats, options=options)
    for each in described:
        click.echo(f"{out}: {stored.checkpoint} as {each}")


def _write_voice(
    source: Source, partial: Path, out: Path, synthesis: SynthesisOptions, *, formats: Sequence[str],
    options: ExportOptions,
) -> list[str]:  # fmt: skip
    """Write all files of a voice but its vocoder; returns what each format is."""
    writers: dict[str, Callable[[], str]] = {  # the card comes last: it names the other files
        SAVED_MODEL: lambda: save_model(source, partial, options=synthesis),
        ONNX: lambda: save_onnx(source, partial, synthesis=synthesis, options=options),
        SAFETENSORS: lambda: write_card_folder(source, partial, out, options=options),
    }
    described = [save() for kind, save in writers.items() if kind in formats]
    (partial / TOKENIZER_FILE).write_bytes(source.voice.tokenizer.to_bytes())
    profile = json.dumps(asdict(source.voice.mel_profile), indent=1) + "\n"
    (partial / PROFILE_FILE).write_text(profile, encoding="utf-8")
    return described


def save_vocoder(stored: StoredModel, path: Path) -> str:
    """Write the averaged weights of a vocoder's run as an ONNX file; returns what it is."""
    from xtts.trainer.model.vocoder import Vocoder
    from xtts.trainer.synth.export.onnx_graph import vocoder_graph

    config = stored.config().vocoder
    assert config is not None
    vocoder = Vocoder(config, stored.voice.mel_profile)
    stored.restore(vocoder.generator_weights)
    path.write_bytes(vocoder_graph(vocoder).SerializeToString())
    return (
        f"{path.name}, a vocoder of {path.stat().st_size / 1e6:.1f} MB: --vocoder onnx:FILE, or export --vocoder FILE"
    )
