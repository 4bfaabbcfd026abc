"""The files of an export, of a voice or of a vocoder."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click

from xtts.shared.errors import LockstepError
from xtts.trainer.export.export_formats import ONNX, PIPER, SAFETENSORS, ExportRequest
from xtts.trainer.export.model_card import save_weights, write_card_folder, write_origin
from xtts.trainer.export.onnx_model import save_onnx
from xtts.trainer.export.piper_voice import save_piper
from xtts.trainer.speech.vocoder import VOCODER_FILE, find_vocoder, make_vocoder
from xtts.trainer.speech.voice_source import TOKENIZER_FILE, Source, write_source
from xtts.trainer.stored.model_folder import write_config
from xtts.trainer.stored.stored_model import StoredModel
from xtts.trainer.system.tensorflow_import import tensorflow_import

PROFILE_FILE = "profile.json"


def export_voice(stored: StoredModel, folder: Path, request: ExportRequest) -> list[str]:
    """Write a voice: what the formats write, its vocoder, `tokenizer.json` and `profile.json`; a Piper voice alone.

    Returns a description of each format.

    Raises:
        LockstepError: The model cannot be exported in these formats.
    """
    source, vocoder = source_of(stored), request.vocoder
    file = vocoder or find_vocoder(source.voice.mel_profile, stored.checkpoint)
    if PIPER in request.formats:
        name = request.out.resolve().name
        return [
            save_piper(stored, source, folder, name, vocoder=file, synthesis=request.synthesis, options=request.options)
        ]
    if vocoder is not None:
        make_vocoder(f"onnx:{vocoder}", source.voice.mel_profile, click.echo)  # refuses another profile's
    if file is not None:
        shutil.copyfile(file, folder / VOCODER_FILE)
    return _write_formats(stored, source, folder, request)


def source_of(stored: StoredModel) -> Source:
    """What the voice of a stored model offers, whatever was fixed in a graph beside its weights."""
    return Source(folder=stored.checkpoint, voice=stored.voice, voice_from=stored.config().model.voice_from)


def write_description(stored: StoredModel, folder: Path) -> None:
    """Write what every export but Piper's has beside weights or graph: configuration, voice, symbols and sources."""
    write_config(folder, stored.config())
    write_source(folder, source_of(stored))
    (folder / TOKENIZER_FILE).write_bytes(stored.voice.tokenizer.to_bytes())
    write_origin(stored, folder)


def _write_formats(stored: StoredModel, source: Source, folder: Path, request: ExportRequest) -> list[str]:
    """Write all files of a voice but its vocoder; returns a description of each format."""
    synthesis, options = request.synthesis, request.options
    write_description(stored, folder)
    writers: dict[str, Callable[[], str]] = {  # the card comes last: it names the other files
        ONNX: lambda: save_onnx(stored, source, folder, synthesis=synthesis, options=options),
        SAFETENSORS: lambda: write_card_folder(stored, folder, request.out, options=options),
    }
    described = [save() for kind, save in writers.items() if kind in request.formats]
    profile = json.dumps(asdict(source.voice.mel_profile), indent=1) + "\n"
    (folder / PROFILE_FILE).write_text(profile, encoding="utf-8")
    return described


def export_vocoder(stored: StoredModel, folder: Path, request: ExportRequest) -> list[str]:
    """Write the averaged weights of a vocoder's run as safetensors, to train on with, or as `vocoder.onnx`.

    Returns a description of it.

    Raises:
        LockstepError: The request names another vocoder to export with it.
    """
    if request.vocoder is not None:
        raise LockstepError("--vocoder", found=f"for {stored.checkpoint}, a vocoder itself", expected="a voice")
    if SAFETENSORS in request.formats:
        save_weights(stored, folder, options=request.options)
        write_description(stored, folder)
        return [f"safetensors: xtts-train --config vocoder --init-from {request.out}"]
    with tensorflow_import(shares_gpu=True):
        from xtts.trainer.export.onnx_graph import vocoder_graph
        from xtts.trainer.models.vocoder.vocoder import Vocoder

    vocoder = Vocoder(stored.config().vocoder, stored.voice.mel_profile)
    stored.restore(vocoder.generator_weights)
    path = folder / VOCODER_FILE
    path.write_bytes(vocoder_graph(vocoder).SerializeToString())
    write_origin(stored, folder)
    size = f"{path.stat().st_size / 1e6:.1f} MB"
    return [f"{path.name}, a vocoder of {size}: --vocoder onnx:FILE, or export --vocoder FILE"]
