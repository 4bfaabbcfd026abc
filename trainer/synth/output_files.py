"""Output files of synthesis: checked before the work, written atomically."""

import io
import os
from pathlib import Path

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files


def check_file(path: Path, option: str, *suffixes: str) -> None:
    """Raise `LockstepError` for another suffix, or a file that cannot be written."""
    expected = f"a file that ends in {' or '.join(suffixes)}"
    if path.suffix.lower() not in suffixes:
        raise LockstepError(option, found=str(path), expected=expected)
    if path.is_dir():
        raise LockstepError(option, found=f"{path} is a folder", expected=expected)
    _check_writable(path.parent, option)


def check_folder(path: Path, option: str) -> None:
    """Raise `LockstepError` for a folder that cannot be written to, or not be created in its parent."""
    if path.exists() and not path.is_dir():
        raise LockstepError(option, found=f"{path} is a file", expected="a folder, for one wav per line")
    _check_writable(path if path.is_dir() else path.parent, option)


def _check_writable(folder: Path, option: str) -> None:
    if not folder.is_dir():
        raise LockstepError(option, found=f"no such folder: {folder}", fix=f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LockstepError(option, found=f"{folder} cannot be written to")


def write_wav(path: Path, samples: np.ndarray, sample_rate: int) -> None:
    """samples: float32[S] in -1 to 1; 16-bit PCM."""
    write_whole(path, wav_bytes(samples, sample_rate))


def wav_bytes(samples: np.ndarray, sample_rate: int) -> bytes:
    """A whole wav file; samples: float32[S] in -1 to 1; 16-bit PCM."""
    import soundfile

    data = io.BytesIO()
    soundfile.write(data, samples, sample_rate, subtype="PCM_16", format="WAV")
    return data.getvalue()


def write_mel(path: Path, mel: np.ndarray) -> None:
    """mel: float32[T, M], natural-log magnitude, as numpy.load reads it."""
    data = io.BytesIO()
    np.save(data, mel.astype(np.float32))
    write_whole(path, data.getvalue())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically; `LockstepError` if it cannot be written."""
    try:
        atomic_files.write(path, data)
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be written ({error.strerror})") from None
