"""Quiet import of TensorFlow, after configuring malloc and XLA's compilation cache."""

import atexit
import gc
import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.shared.system.machine import keep_freed_memory, user_cache

GPUS = Path("/proc/driver/nvidia/gpus")
"""Folder with an entry for each NVIDIA card, readable without TensorFlow."""
_DIRECTORY, _WRITABLE = "--tf_xla_persistent_cache_directory", "--tf_xla_persistent_cache_read_only=false"
_AUTOTUNED = "--xla_gpu_per_fusion_autotune_cache_dir"


def machine_digest(proc: Path = Path("/proc")) -> str:
    """Digest of the hardware and driver that compiled code depends on, since machines may share a cache."""
    lines = [platform.machine(), platform.processor(), *_lines(proc / "cpuinfo", "flags", "Features")[:1]]
    nvidia = proc / "driver" / "nvidia"
    lines += _lines(nvidia / "version", "NVRM")
    for card in sorted(nvidia.glob("gpus/*/information")):
        lines += _lines(card, "Model")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def _lines(file: Path, *prefixes: str) -> list[str]:
    """Lines of a file with one of these prefixes; none if it cannot be read."""
    try:
        return [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith(prefixes)]
    except OSError:
        return []


def enable_compile_cache() -> Path | None:
    """Enable XLA's persistent compilation cache in the user's cache folder, so that a restart loads its steps.

    With a GPU, the results of its autotuner are kept beside them, for steps that are compiled again.

    Returns the folder, or None if the user's TF_XLA_FLAGS decide or the folder cannot be written.
    """
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if _DIRECTORY in flags:
        return None
    folder = user_cache() / f"xla-{metadata.version('tensorflow')}-{machine_digest()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK) or len(str(folder).split()) != 1:  # TensorFlow splits its flags at spaces
        return None
    os.environ["TF_XLA_FLAGS"] = f"{flags} {_DIRECTORY}={folder} {_WRITABLE}".strip()
    if any(GPUS.glob("*")):  # of two flags with the same name the last counts: the user's
        os.environ["XLA_FLAGS"] = f"{_AUTOTUNED}={folder / 'autotuned'} {os.environ.get('XLA_FLAGS', '')}".strip()
    return folder


def has_tensorflow() -> bool:
    """Whether TensorFlow is installed; speaking and building a cache do not need it."""
    return find_spec("tensorflow") is not None


def check_tensorflow() -> None:
    """Raise `LockstepError` if TensorFlow is not installed."""
    if not has_tensorflow():
        raise LockstepError("TensorFlow", found="not installed", fix="pip install 'lockstep-tts[train]'")


@contextmanager
def tensorflow_import(*, compile_cache: bool = True, shares_gpu: bool = False) -> Iterator[None]:
    """Context for importing TensorFlow: its native libraries write to stderr only if the import fails.

    Raises `LockstepError` if it is not installed.

    compile_cache: whether XLA keeps compiled steps for the next start.
    shares_gpu: whether TensorFlow takes a GPU's memory as it needs it, to run beside a training run, instead of nearly
    all of it at the start; the user's TF_FORCE_GPU_ALLOW_GROWTH has precedence.
    """
    check_tensorflow()
    if shares_gpu:
        os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    keep_freed_memory()
    end_at_once()
    if compile_cache:
        enable_compile_cache()
    with _stderr_held_back():
        yield
        import tensorflow as tf

        # XLA repeats the work of TensorFlow's own graph optimiser, and the loop around the steps is small. It processes
        # every function that the loop calls: 11 s of the 57 s of CPU time of a warm start of `tiny` with four shapes.
        # The steps take the same time without it.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        tf.config.list_physical_devices()  # looks for a GPU, and complains of a driver that it cannot start


def end_at_once() -> None:
    """Skip Python's garbage collection at the end of the process.

    It searches all objects of TensorFlow's graphs, for 9 s of a micro model on a busy machine, to free memory that the
    system takes back a moment later.
    """
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


@contextmanager
def _stderr_held_back() -> Iterator[None]:
    """Hold back output to stderr; show it if the block fails."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(kept, held.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
