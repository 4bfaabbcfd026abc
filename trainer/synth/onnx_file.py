"""Sessions of ONNX models: run by onnxruntime on the CPU, with clear refusals."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.errors import LockstepError

if TYPE_CHECKING:
    import onnxruntime  # pyright: ignore[reportMissingImports]


def read_file(path: Path) -> bytes:
    """The bytes of a file; `LockstepError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be read ({error.strerror})") from None


def open_session(data: bytes, where: str, *, threads: int = 0) -> "onnxruntime.InferenceSession":
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
