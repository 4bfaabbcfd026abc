"""onnxruntime as this package uses it: on the CPU, with a limit of memory, its refusals as `LockstepError`."""

from functools import lru_cache
from typing import Any

from xtts.shared.errors import LockstepError

_MOST_MEMORY = 2**32
"""Bytes of all ONNX models of a process: what an operator asks for is not in the file."""


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
    _limit_memory()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its complaints come as exceptions too
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.use_env_allocators", "1")
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except refusals() as error:
        raise LockstepError(where, found=f"not a usable ONNX model ({first_line(error)})") from None


@lru_cache
def _limit_memory() -> None:
    """Give all sessions of this process one allocator with a limit."""
    import onnxruntime  # pyright: ignore[reportMissingImports]

    limit = onnxruntime.OrtArenaCfg({"max_mem": _MOST_MEMORY, "arena_extend_strategy": 1})
    cpu = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(cpu, limit)


@lru_cache
def refusals() -> tuple[type[Exception], ...]:
    """Exceptions of onnxruntime for a model that it cannot load or run; most have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # pyright: ignore[reportMissingImports]

    own = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (OSError, RuntimeError, ValueError, MemoryError, *own)


def first_line(error: Exception) -> str:
    """The first line of an exception's text, or its class: for messages."""
    return (str(error).splitlines() or [type(error).__name__])[0]
