"""Sessions of ONNX models in onnxruntime on the CPU, with clear error messages."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from xtts.shared.errors import LockstepError

if TYPE_CHECKING:
    import onnxruntime


def read_file(path: Path, option: str = "") -> bytes:
    """Read a file, which an option of a command may have named; `LockstepError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise LockstepError(f"{option} {path}".strip(), found=f"cannot be read ({error.strerror})") from None


def open_session(data: bytes, location: str, *, threads: int = 0) -> "onnxruntime.InferenceSession":
    """Open a session of an ONNX model; threads: of one operator, 0 for one per core.

    Sizes may change from run to run, so no memory plan is kept for each.

    Raises:
        LockstepError: At `location`, if onnxruntime refuses the model.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its errors come as exceptions too
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = False
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except refusals() as error:
        raise LockstepError(location, found=f"not a usable ONNX model ({short_message(error)})") from None


@cache
def refusals() -> tuple[type[Exception], ...]:
    """Exceptions of onnxruntime for a model that it cannot load or run; most have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (OSError, RuntimeError, ValueError, MemoryError, *own)


def short_message(error: Exception) -> str:
    """Return the first line of an exception's text, or else the name of its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]
