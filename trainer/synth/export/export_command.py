"""`xtts-synth export`: a SavedModel, weights to pass on and train on, an ONNX graph, or several in one folder."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from xtts.shared.cache.cache_spec import TOKENIZER_FILE
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.export.model_card import CardOptions, write_card_folder
from xtts.trainer.synth.export.onnx_model import OnnxOptions, save_onnx
from xtts.trainer.synth.export.saved_model import save_model
from xtts.trainer.synth.output_files import check_folder
from xtts.trainer.synth.voice_source import Source, open_source

PROFILE_FILE = "profile.json"
SAVED_MODEL, SAFETENSORS, ONNX = "saved-model", "safetensors", "onnx"
_IN_ORDER = (SAVED_MODEL, ONNX, SAFETENSORS)
"""The card comes last: it names the other files."""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A request to export: `card` is for safetensors, `onnx` for ONNX."""

    checkpoint: Path
    out: Path
    synthesis: SynthesisOptions
    """Steps and solver of a SavedModel, and of an ONNX graph where the schedule is left out."""
    formats: Sequence[str] = (SAVED_MODEL,)
    card: CardOptions = field(default_factory=CardOptions)
    onnx: OnnxOptions = field(default_factory=OnnxOptions)


def export(request: ExportRequest) -> None:
    """Write `out/` atomically: what the formats write, `tokenizer.json` and `profile.json`.

    Raises:
        LockstepError: OUT is already there or cannot be written, or the model cannot be exported so.
    """
    check_folder(request.out, "OUT")
    if request.out.exists():
        raise LockstepError("OUT", found=f"{request.out} already exists", expected="a new folder")
    if request.onnx.vocoder and SAFETENSORS in request.formats:
        found = f"together with --format {SAFETENSORS}: Lockstep does not speak with a graph that gives samples"
        raise LockstepError("--vocoder", found=found, expected=f"--format {ONNX} alone")
    source = open_source(request.checkpoint)
    partial = request.out.with_name(f".{request.out.name}.{os.getpid()}.partial")
    try:
        partial.mkdir()
        described = [_save(source, partial, request, kind) for kind in _IN_ORDER if kind in request.formats]
        tokenizer = json.dumps(source.voice.symbol_table.to_json(), indent=1, ensure_ascii=False) + "\n"
        (partial / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
        profile = json.dumps(asdict(source.voice.mel_profile), indent=1) + "\n"
        (partial / PROFILE_FILE).write_text(profile, encoding="utf-8")
        partial.rename(request.out)
    except OSError as error:
        raise LockstepError(str(request.out), found=f"cannot be written ({error.strerror})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for each in described:
        print(f"{request.out}: {source.checkpoint} as {each}")


def _save(source: Source, folder: Path, request: ExportRequest, kind: str) -> str:
    """Write what a format holds into a folder; a line that says what it is."""
    if kind == SAFETENSORS:
        card = write_card_folder(source, folder, name=request.out.resolve().name, options=request.card)
        return f"safetensors; its card is {request.out / card}"
    if kind == ONNX:
        return save_onnx(source, folder, synthesis=request.synthesis, options=request.onnx)
    return save_model(source, folder, options=request.synthesis)
