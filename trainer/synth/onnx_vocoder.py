"""An ONNX vocoder behind the acoustic graph: one graph from tokens to samples. The file is data from elsewhere."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError
from xtts.trainer.synth.vocoder import PROFILE_KEY

if TYPE_CHECKING:
    import onnx

AUDIO = "audio_output"
"""The output of samples; by this name sherpa-onnx knows that no vocoder has to follow."""
OPSET = 17
"""Version of ONNX's operators in both graphs: old enough for runtimes of 2022."""
MOST_BYTES = 2**31 - 1
"""The largest message of protobuf, and so the largest graph in one file."""
_OPTION = "--vocoder"


def load_vocoder(path: Path, profile: MelProfile) -> "onnx.ModelProto":
    """A vocoder for log-mels of the profile, valid, whole in one file, of `OPSET`.

    Raises:
        LockstepError: The file is not such a vocoder: what it is instead.
    """
    import onnx

    where = f"{_OPTION} {path}"
    if not path.is_file():
        raise LockstepError(where, found="no such file")
    if (size := path.stat().st_size) > MOST_BYTES:
        raise LockstepError(where, found=f"{size:,} bytes", expected=f"at most {MOST_BYTES:,}")
    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except OSError as error:
        raise LockstepError(where, found=f"cannot be read ({error.strerror})") from None
    except Exception:  # protobuf's own errors have no common public class
        raise LockstepError(where, found="not an ONNX model") from None
    _refuse_external_data(model, where)
    _check_profile(model, profile, where)
    try:
        onnx.checker.check_model(model)
        found = {entry.domain: entry.version for entry in model.opset_import}.get("", OPSET)
        if found != OPSET:
            model = onnx.version_converter.convert_version(model, OPSET)
    except Exception as error:  # RuntimeError, ValueError and its own
        line = (str(error).splitlines() or [type(error).__name__])[0]
        fix = f"export the vocoder again, with opset {OPSET}"
        raise LockstepError(where, found=f"not a usable ONNX model ({line})", fix=fix) from None
    return model


def _refuse_external_data(model: "onnx.ModelProto", where: str) -> None:
    """Weights in other files would be read from a path that the model names."""
    import onnx

    for tensor in _tensors([model.graph, *model.functions]):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise LockstepError(
                where, found=f"weights outside the file ({tensor.name})", expected="a model in one file",
                fix="save it with onnx.save(model, FILE), without external data",
            )  # fmt: skip


def _tensors(graphs: "Iterable[onnx.GraphProto | onnx.FunctionProto]") -> "Iterator[onnx.TensorProto]":
    """Every tensor of graphs, of the graphs in their nodes' attributes too; protobuf limits how deep they are."""
    for graph in graphs:
        if hasattr(graph, "initializer"):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for node in graph.node:
            for attribute in node.attribute:
                yield from (attribute.t, *attribute.tensors)
                for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                    yield from (sparse.values, sparse.indices)
                inner = [attribute.g] if attribute.HasField("g") else []
                yield from _tensors([*inner, *attribute.graphs])


def _check_profile(model: "onnx.ModelProto", profile: MelProfile, where: str) -> None:
    declared = {entry.key: entry.value for entry in model.metadata_props}.get(PROFILE_KEY, profile.name)
    if declared != profile.name:
        raise LockstepError(
            where, found=f"a vocoder for mel profile {declared}", expected=f"{profile.name}, the checkpoint's"
        )
    inputs, outputs = _real_inputs(model), model.graph.output
    shapes = [_dimensions(entry) for entry in inputs]
    channels = profile.mel_channels
    if len(inputs) != 1 or len(shapes[0]) != 3 or channels not in shapes[0][1:] or len(outputs) != 1:
        found = "; ".join(f"{entry.name} {shape}" for entry, shape in zip(inputs, shapes, strict=True))
        raise LockstepError(
            where, found=f"a model with the inputs {found} and {len(outputs)} outputs",
            expected=f"one log-mel [1, {channels}, T] or [1, T, {channels}], and samples",
        )  # fmt: skip


def mel_input(vocoder: "onnx.ModelProto", channels: int) -> tuple[str, bool]:
    """(name of the input, whether it is [1, T, M]) of a vocoder that `load_vocoder` returned."""
    entry = _real_inputs(vocoder)[0]
    return entry.name, _dimensions(entry)[1] != channels


def _real_inputs(model: "onnx.ModelProto") -> "list[onnx.ValueInfoProto]":
    """Inputs without the weights, which files of IR version 3 list among them."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [entry for entry in model.graph.input if entry.name not in weights]


def _dimensions(entry: "onnx.ValueInfoProto") -> list[int | str]:
    return [axis.dim_value or axis.dim_param for axis in entry.type.tensor_type.shape.dim]


def join(acoustic: "onnx.ModelProto", mel: str, vocoder: "onnx.ModelProto", channels: int) -> "onnx.ModelProto":
    """One graph whose only output is `AUDIO`, float32[1, S] in -1 to 1; mel: the acoustic output [1, M, T]."""
    import onnx
    from onnx import helper

    weights = {tensor.name for tensor in vocoder.graph.initializer}
    kept = [value for value in vocoder.graph.input if value.name not in weights]
    del vocoder.graph.input[:], vocoder.metadata_props[:]
    vocoder.graph.input.extend(kept)
    vocoder.ir_version = acoustic.ir_version = max(vocoder.ir_version, acoustic.ir_version)
    vocoder = onnx.compose.add_prefix(vocoder, "vocoder/")
    name, by_frames = mel_input(vocoder, channels)
    if by_frames:
        turned = "mel_by_frames"
        acoustic.graph.node.append(helper.make_node("Transpose", [mel], [turned], perm=[0, 2, 1]))
        acoustic.graph.output.append(helper.make_tensor_value_info(turned, onnx.TensorProto.FLOAT, [1, None, channels]))
        mel = turned
    outputs = [vocoder.graph.output[0].name]
    joined = onnx.compose.merge_models(acoustic, vocoder, io_map=[(mel, name)], outputs=outputs)
    samples, graph = joined.graph.output[0].name, joined.graph
    graph.initializer.extend(
        [
            helper.make_tensor("samples_shape", onnx.TensorProto.INT64, [2], [1, -1]),
            helper.make_tensor("lowest_sample", onnx.TensorProto.FLOAT, [], [-1.0]),
            helper.make_tensor("highest_sample", onnx.TensorProto.FLOAT, [], [1.0]),
        ]
    )
    graph.node.append(helper.make_node("Reshape", [samples, "samples_shape"], ["samples_in_a_row"]))
    graph.node.append(helper.make_node("Clip", ["samples_in_a_row", "lowest_sample", "highest_sample"], [AUDIO]))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(AUDIO, onnx.TensorProto.FLOAT, [1, "samples"]))
    whole: onnx.ModelProto = joined
    return whole
