"""Output files of synthesis: checked before the work, written atomically."""

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files
from xtts.trainer.speech.encodings import Encoder, format_name

STANDARD_OUTPUT = Path("-")


def check_file(path: Path, option: str, *suffixes: str) -> None:
    """Raise `LockstepError` for a file with another suffix, or that cannot be written."""
    expected = f"a file that ends in {' or '.join(suffixes)}"
    if path.suffix.lower() not in suffixes:
        raise LockstepError(option, found=str(path), expected=expected)
    if path.is_dir():
        raise LockstepError(option, found=f"{path} is a folder", expected=expected)
    _check_writable(path.parent, option)


def check_folder(path: Path, option: str) -> None:
    """Raise `LockstepError` for a folder that cannot be written to or created."""
    if path.exists() and not path.is_dir():
        raise LockstepError(option, found=f"{path} is a file", expected="a folder, for one wav per line")
    _check_writable(path if path.is_dir() else path.parent, option)


@contextmanager
def new_folder(out: Path, *, replace: bool = False) -> Iterator[Path]:
    """Context that fills a folder, which becomes OUT at its end; `LockstepError` if OUT exists or is not writable.

    replace: in place of an OUT that exists, which stays as it is until then.
    """
    check_folder(out, "OUT")
    if out.exists() and not replace:
        raise LockstepError("OUT", found=f"{out} already exists", expected="a new folder")
    partial, replaced = (out.with_name(f".{out.name}.{os.getpid()}.{what}") for what in ("partial", "replaced"))
    try:
        partial.mkdir()
        yield partial
        for path in (*partial.rglob("*"), partial):
            atomic_files.sync_file(path)
        if out.exists():
            out.rename(replaced)
        atomic_files.move((partial, out))
    except OSError as error:
        raise LockstepError(str(out), found=f"cannot be written ({error.strerror})") from None
    finally:
        if replaced.exists() and not out.exists():  # stopped between the two renames
            replaced.rename(out)
        for path in (partial, replaced):
            shutil.rmtree(path, ignore_errors=True)


def _check_writable(folder: Path, option: str) -> None:
    if not folder.is_dir():
        raise LockstepError(option, found=f"no such folder: {folder}", fix=f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LockstepError(option, found=f"{folder} cannot be written to")


def write_sound(path: Path, samples: np.ndarray, sample_rate: int) -> None:
    """Write a sound of 16 bits in the format of the path's suffix, or wav; samples: float32[S] in -1 to 1."""
    encoder = Encoder(format_name(path.suffix or "wav"), sample_rate, streams=False)
    write_bytes(path, encoder.add(samples, last=True))


def write_mel(path: Path, mel: np.ndarray) -> None:
    """Write a mel for `numpy.load`: float32[T, M], natural-log magnitude."""
    data = io.BytesIO()
    np.save(data, mel.astype(np.float32))
    write_bytes(path, data.getvalue())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically, or standard output; `LockstepError` if it cannot be written."""
    try:
        if path == STANDARD_OUTPUT:
            sys.stdout.buffer.write(data)
        else:
            atomic_files.write(path, data)
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be written ({error.strerror})") from None
