"""ONNX files and sessions: read with clear refusals, run by onnxruntime on the CPU."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from xtts.shared.errors import LockstepError

LARGEST_BYTES = 2**30
"""BigVGAN's largest has 450 MB."""


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
        LockstepError: The file is too large or no ONNX model, or keeps weights in other files; or the package `onnx`
            is missing.
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
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise LockstepError(
                str(path), found=f"the weight {tensor.name!r:.80} is kept in another file",
                expected="one file with all weights", fix="export it without external data",
            )  # fmt: skip
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return OnnxFile(path=path, data=data, metadata=metadata)


def open_session(data: bytes, where: str, *, threads: int = 0) -> Any:  # noqa: ANN401 - onnxruntime ships no types
    """A session of an ONNX model; threads: those of one operator, 0 for as many as there are cores.

    Sizes may change from run to run: no plan of the memory is kept for those of each.

    Raises:
        LockstepError: onnxruntime is missing, or refuses the model; `where` is for the message.
    """
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports]
    except ImportError:
        found, fix = "onnxruntime is not installed", "pip install 'lockstep-tts[onnx]'"
        raise LockstepError(where, found=found, fix=fix) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its complaints come as exceptions too
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = False
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except refusals() as error:
        raise LockstepError(where, found=f"not a usable ONNX model ({first_line(error)})") from None


@cache
def refusals() -> tuple[type[Exception], ...]:
    """Exceptions of onnxruntime for a model that it cannot load or run; most have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # pyright: ignore[reportMissingImports]

    own = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (OSError, RuntimeError, ValueError, MemoryError, *own)


def first_line(error: Exception) -> str:
    """The first line of an exception's text, or its class: for messages."""
    return (str(error).splitlines() or [type(error).__name__])[0]
