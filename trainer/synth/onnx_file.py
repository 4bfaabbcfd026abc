"""Reading an ONNX file from elsewhere: checked whole before onnxruntime sees a byte of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xtts.shared.errors import LockstepError

LARGEST_BYTES = 2**30
"""BigVGAN's largest has 450 MB."""
DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
"""Operators that onnxruntime itself has."""

_EXTERNAL = 1
_VALUES_PER_BYTE = 4
"""The smallest types of ONNX have 2 bits."""
_SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class OnnxFile:
    """An ONNX model that is one file and needs nothing else."""

    path: Path
    data: bytes
    metadata: dict[str, str]


def read_onnx_file(path: Path, *, where: str, kind: str = "a vocoder") -> OnnxFile:
    """Read an ONNX file.

    where: the option and the file, kind: what the file should hold; both for messages.

    Raises:
        LockstepError: The file is too large or no ONNX model, keeps weights in other files, has operators that
            onnxruntime lacks, or declares tensors larger than their bytes; or the package `onnx` is missing.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise LockstepError(where, found="onnx is not installed", fix="pip install 'lockstep-tts[onnx]'") from None
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise LockstepError(str(path), found=f"{size:,} bytes", expected=f"{kind} of at most {LARGEST_BYTES:,}")
        data = path.read_bytes()
        model = onnx.ModelProto.FromString(data)
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be read ({error.strerror})") from None
    except DecodeError:
        raise LockstepError(str(path), found="no ONNX model, or one that was cut off") from None
    if not model.graph.node:
        raise LockstepError(str(path), found="an ONNX model without operators", expected=kind)
    _check_operators(path, model)
    if _has_sparse(model):
        raise LockstepError(str(path), found="sparse weights", expected="dense ones")
    for tensor in _tensors(model):
        _check_tensor(path, tensor)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return OnnxFile(path=path, data=data, metadata=metadata)


def _check_operators(path: Path, model: Any) -> None:  # noqa: ANN401 - protobuf messages have no static types
    known = DOMAINS | {function.domain for function in model.functions}
    for node in _nodes(model):
        if node.domain not in known:
            raise LockstepError(
                str(path), found=f"the operator {_shown(node.op_type)} of {_shown(node.domain)}",
                expected="operators of ONNX alone: no library of custom operators is ever loaded",
            )  # fmt: skip


def _check_tensor(path: Path, tensor: Any) -> None:  # noqa: ANN401
    if tensor.data_location == _EXTERNAL or tensor.external_data:
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        raise LockstepError(
            str(path), found=f"the weight {_shown(tensor.name)} is kept in another file, {_shown(location)}",
            expected="one file with all weights", fix="export it without external data",
        )  # fmt: skip
    count, stored = math.prod(tensor.dims), tensor.ByteSize()
    if min(tensor.dims, default=0) < 0 or count > _VALUES_PER_BYTE * stored:
        raise LockstepError(
            str(path), found=f"the weight {_shown(tensor.name)} declares the shape {list(tensor.dims)[:8]}",
            expected=f"at most the {stored:,} bytes that the file has for it",
        )  # fmt: skip


def _nodes(model: Any) -> Iterator[Any]:  # noqa: ANN401
    """Every operator, those of branches, loops and functions included."""
    waiting = [model.graph, *model.functions]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                waiting += attribute.graphs
                if attribute.HasField("g"):
                    waiting.append(attribute.g)


def _tensors(model: Any) -> Iterator[Any]:  # noqa: ANN401
    """Every stored tensor: weights, and constants in the attributes of operators."""
    graphs = [model.graph]
    for node in _nodes(model):
        for attribute in node.attribute:
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t
            graphs += (*attribute.graphs, attribute.g)
    for graph in graphs:
        yield from graph.initializer


def _has_sparse(model: Any) -> bool:  # noqa: ANN401
    """Whether anything is stored as a sparse tensor, whose declared shape no number of bytes bounds."""
    attributes = [attribute for node in _nodes(model) for attribute in node.attribute]
    graphs = [model.graph, *(graph for attribute in attributes for graph in (attribute.g, *attribute.graphs))]
    sparse = any(attribute.HasField("sparse_tensor") or attribute.sparse_tensors for attribute in attributes)
    return sparse or any(graph.sparse_initializer for graph in graphs)


def _shown(text: str) -> str:
    """A text of the file for a message: quoted, without control characters, short."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
