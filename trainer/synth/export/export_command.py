"""`xtts-synth export`: a SavedModel, weights to pass on and train on, an ONNX graph, or several in one folder."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from xtts.shared.cache.cache_spec import TOKENIZER_FILE
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.export.model_card import CardOptions, write_card_folder
from xtts.trainer.synth.export.onnx_model import OnnxOptions, save_onnx
from xtts.trainer.synth.export.saved_model import save_model
from xtts.trainer.synth.output_files import check_folder
from xtts.trainer.synth.voice_source import open_source

PROFILE_FILE = "profile.json"
SAVED_MODEL, SAFETENSORS, ONNX = "saved-model", "safetensors", "onnx"


def export(
    checkpoint: Path, out: Path, options: SynthesisOptions, *, formats: Sequence[str], card: CardOptions,
    onnx: OnnxOptions,
) -> None:  # fmt: skip
    """Write `out/` atomically: what the formats write, `tokenizer.json` and `profile.json`.

    options: evaluations and solver of a SavedModel, and of an ONNX graph where the schedule is left out; card: for
    safetensors, onnx: for ONNX.

    Raises:
        LockstepError: OUT is already there or cannot be written, or the model cannot be exported so.
    """
    check_folder(out, "OUT")
    if out.exists():
        raise LockstepError("OUT", found=f"{out} already exists", expected="a new folder")
    source, partial = open_source(checkpoint), out.with_name(f".{out.name}.{os.getpid()}.partial")
    writers: dict[str, Callable[[], str]] = {  # the card comes last: it names the other files
        SAVED_MODEL: lambda: save_model(source, partial, options=options),
        ONNX: lambda: save_onnx(source, partial, synthesis=options, options=onnx),
        SAFETENSORS: lambda: write_card_folder(source, partial, out, options=card),
    }
    try:
        partial.mkdir()
        described = [save() for kind, save in writers.items() if kind in formats]
        tokenizer = json.dumps(source.voice.symbol_table.to_json(), indent=1, ensure_ascii=False) + "\n"
        (partial / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
        profile = json.dumps(asdict(source.voice.mel_profile), indent=1) + "\n"
        (partial / PROFILE_FILE).write_text(profile, encoding="utf-8")
        partial.rename(out)
    except OSError as error:
        raise LockstepError(str(out), found=f"cannot be written ({error.strerror})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for each in described:
        click.echo(f"{out}: {source.checkpoint} as {each}")
