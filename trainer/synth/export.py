"""`xtts-synth export`: the model with tokenizer and mel profile, as a SavedModel for stock TensorFlow or in ONNX."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.cache.cache_spec import TOKENIZER_FILE
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.voice_description import Shape
from xtts.trainer.synth.export_onnx import OnnxOptions, export_onnx
from xtts.trainer.synth.output_files import check_folder
from xtts.trainer.synth.voice_source import Source, open_source
from xtts.trainer.system.tensorflow_import import tensorflow_import

if TYPE_CHECKING:
    import tensorflow as tf

    from xtts.trainer.synth.speaker import Generated

PROFILE_FILE, MODEL_FOLDER = "profile.json", "model"


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A request to export."""

    checkpoint: Path
    out: Path
    steps: int
    onnx: OnnxOptions | None = None
    """A graph in ONNX; a SavedModel without."""


def export(request: ExportRequest) -> None:
    """Write `out/` with the model, `tokenizer.json` and `profile.json` atomically.

    Raises:
        LockstepError: OUT is already there or cannot be written, or the model cannot be exported so.
    """
    check_folder(request.out, "OUT")
    if request.out.exists():
        raise LockstepError("OUT", found=f"{request.out} already exists", expected="a new folder")
    source = open_source(request.checkpoint)
    partial = request.out.with_name(f".{request.out.name}.{os.getpid()}.partial")
    try:
        partial.mkdir()
        if request.onnx is None:
            described = _save_model(source, partial / MODEL_FOLDER, request.steps)
        else:
            described = export_onnx(source, partial, steps=request.steps, options=request.onnx)
        tokenizer = json.dumps(source.voice.symbol_table.to_json(), indent=1, ensure_ascii=False) + "\n"
        (partial / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
        profile = json.dumps(asdict(source.voice.mel_profile), indent=1) + "\n"
        (partial / PROFILE_FILE).write_text(profile, encoding="utf-8")
        partial.rename(request.out)
    except OSError as error:
        raise LockstepError(str(request.out), found=f"cannot be written ({error.strerror})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"{request.out}: {source.checkpoint} as {described}")


def name(shape: Shape) -> str:
    """Name of a shape's signature: its tokens and frames."""
    return f"speak_{shape.tokens}_{shape.frames}"


def _save_model(source: Source, folder: Path, steps: int) -> str:
    """One signature for each shape; `serving_default` is the largest. Returns a line that says what it is.

    tokens: int32[1, L] padded with 0, token_length: int32[1], temperature and speed: float32[], seed: int32[2]
    (, speaker: int32[1] or voice: float32[1, N, D])(, language: int32[1]) -> mel: float32[1, T, M], natural-log
    magnitude, and mel_length: int32[1], more than T if the shape was too short. A model with voice latents has one more
    signature, `encode_reference`: reference: float32[1, F, M], reference_length: int32[1] -> voice: float32[1, N, D].
    """
    with tensorflow_import():
        import tensorflow as tf

        from xtts.trainer.synth.speaker import generate_signature, generator, load_model, reference_signature

    model = load_model(source)
    module = tf.Module()
    module.weights = list(model.trainable_variables)
    signatures = {}
    for shape in source.voice.ladder:
        speak = tf.function(
            _named(generator(model, shape.frames, steps, source.conditioning)),
            input_signature=generate_signature(source, shape.tokens),
        )
        signatures[name(shape)] = speak.get_concrete_function()
    if source.model.voice_latents:
        encode_reference = tf.function(
            lambda *crop: {"voice": model.encode_reference(*crop)},
            input_signature=reference_signature(source),
        )
        signatures["encode_reference"] = encode_reference.get_concrete_function()
    signatures["serving_default"] = signatures[name(source.voice.ladder[-1])]
    tf.saved_model.save(module, str(folder), signatures)
    shapes = ", ".join(f"{name(shape)} ({shape.frames} frames)" for shape in source.voice.ladder)
    return f"a SavedModel; signatures: {shapes}"


def _named(generate: "Callable[..., Generated]") -> "Callable[..., dict[str, tf.Tensor]]":
    """The same function with named outputs, for signatures."""

    def speak(
        tokens: "tf.Tensor", token_length: "tf.Tensor", temperature: "tf.Tensor", speed: "tf.Tensor",
        seed: "tf.Tensor", *given: "tf.Tensor",
    ) -> "dict[str, tf.Tensor]":  # fmt: skip
        mel, mel_length = generate(tokens, token_length, temperature, speed, seed, *given)
        return {"mel": mel, "mel_length": mel_length}

    return speak
