"""A vocoder of samples behind the acoustic graph: one ONNX graph from tokens to samples."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError
from xtts.trainer.synth.onnx_file import first_line
from xtts.trainer.synth.vocoder.onnx_vocoder import MelInput, OnnxVocoder

if TYPE_CHECKING:
    import onnx

AUDIO = "audio_output"
"""The output of samples; by this name sherpa-onnx knows that no vocoder has to follow."""
OPSET = 17
"""Version of ONNX's operators in both graphs: old enough for runtimes of 2022."""


@dataclass(frozen=True, kw_only=True)
class JoinableVocoder:
    """A vocoder that was tried with mels of the profile, in operators of `OPSET`, with one output: samples."""

    model: "onnx.ModelProto"
    mel: MelInput
    where: str
    """For messages: the option and the file."""


def load_joinable(path: Path, profile: MelProfile, warn: Callable[[str], None]) -> JoinableVocoder:
    """A vocoder of an ONNX file, ready to be joined.

    Raises:
        LockstepError: The file is no vocoder of the profile, gives a spectrum, or does not convert to `OPSET`.
    """
    import onnx

    where = f"--vocoder {path}"
    mel = OnnxVocoder(path, profile, warn).mel_input
    model = onnx.load(path)
    if len(model.graph.output) != 1:
        raise LockstepError(
            where, found=f"a spectrum ({', '.join(part.name for part in model.graph.output)}), which cannot be joined",
            expected="a vocoder whose only output is samples",
            fix="export without --vocoder, and give this file to the runtime",
        )  # fmt: skip
    found = {entry.domain: entry.version for entry in model.opset_import}.get("", OPSET)
    try:
        if found != OPSET:
            model = onnx.version_converter.convert_version(model, OPSET)
    except Exception as error:  # RuntimeError, ValueError and its own
        raise LockstepError(
            where, found=f"opset {found}, which does not convert to {OPSET} ({first_line(error)})",
            fix=f"export the vocoder again, with opset {OPSET}",
        ) from None  # fmt: skip
    return JoinableVocoder(model=model, mel=mel, where=where)


def join(acoustic: "onnx.ModelProto", mel: str, vocoder: JoinableVocoder, channels: int) -> "onnx.ModelProto":
    """One graph whose only output is `AUDIO`, float32[1, S] in -1 to 1.

    Args:
        acoustic: The graph before it; what it holds is changed.
        mel: Its output float32[1, M, T], M = channels.
        vocoder: The vocoder; what it holds is changed too.
        channels: Mel channels.

    Raises:
        LockstepError: The two graphs do not join.
    """
    import onnx

    model = vocoder.model
    weights = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in weights]
    # Files of IR version 3 list weights among the inputs.
    del model.graph.input[:], model.metadata_props[:]
    model.graph.input.extend(kept)
    model.ir_version = acoustic.ir_version = max(model.ir_version, acoustic.ir_version)
    given = _as_the_vocoder_wants_it(acoustic, mel, vocoder.mel, channels)
    try:
        model = onnx.compose.add_prefix(model, "vocoder/")
        wave = model.graph.output[0]
        joined: onnx.ModelProto = onnx.compose.merge_models(
            acoustic, model, io_map=[(given, f"vocoder/{vocoder.mel.name}")], outputs=[wave.name]
        )
    except Exception as error:  # RuntimeError, ValueError and the checker's own
        raise LockstepError(vocoder.where, found=f"does not join ({first_line(error)})") from None
    _add_samples(joined.graph, wave.name, wave.type.tensor_type.elem_type == onnx.TensorProto.INT16)
    return joined


def _as_the_vocoder_wants_it(acoustic: "onnx.ModelProto", mel: str, wanted: MelInput, channels: int) -> str:
    """Add what turns and casts the mel; the name of the output for the vocoder."""
    import onnx
    from onnx import helper

    kind, shape = onnx.TensorProto.FLOAT, [1, channels, None]
    if not wanted.channels_first:
        acoustic.graph.node.append(helper.make_node("Transpose", [mel], ["mel_by_frames"], perm=[0, 2, 1]))
        mel, shape = "mel_by_frames", [1, None, channels]
    if wanted.dtype != np.float32:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(wanted.dtype))
        acoustic.graph.node.append(helper.make_node("Cast", [mel], ["mel_cast"], to=kind))
        mel = "mel_cast"
    if mel not in {entry.name for entry in acoustic.graph.output}:
        acoustic.graph.output.append(helper.make_tensor_value_info(mel, kind, shape))
    return mel


def _add_samples(graph: "onnx.GraphProto", wave: str, is_pcm_16: bool) -> None:
    """Make float32[1, S] in -1 to 1 of the vocoder's output, the only output `AUDIO`."""
    import onnx
    from onnx import helper

    kind = onnx.TensorProto.FLOAT
    graph.initializer.extend(
        [
            helper.make_tensor("samples_shape", onnx.TensorProto.INT64, [2], [1, -1]),
            helper.make_tensor("sample_scale", kind, [], [1.0 / 2**15 if is_pcm_16 else 1.0]),
            helper.make_tensor("lowest_sample", kind, [], [-1.0]),
            helper.make_tensor("highest_sample", kind, [], [1.0]),
        ]
    )
    graph.node.extend(
        [
            helper.make_node("Reshape", [wave, "samples_shape"], ["samples_in_a_row"]),
            helper.make_node("Cast", ["samples_in_a_row"], ["samples_in_float"], to=kind),
            helper.make_node("Mul", ["samples_in_float", "sample_scale"], ["samples_in_scale"]),
            helper.make_node("Clip", ["samples_in_scale", "lowest_sample", "highest_sample"], [AUDIO]),
        ]
    )
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(AUDIO, kind, [1, "samples"]))
