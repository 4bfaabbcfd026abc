"""Output files of synthesis: checked before the work, written atomically."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files
from xtts.trainer.speech.encodings import Encoder, FileEncoder, format_name

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


@contextmanager
def sound_file(path: Path, sample_rate: int) -> Iterator[Callable[[np.ndarray, bool], None]]:
    """Open a sound file of 16 bits in the format of its suffix, or wav, for speech that is written while it is made.

    Gives a function of samples, float32[S] in -1 to 1, and whether they are the last. After each call the file is
    whole; standard output gets a wav without a length. The file is made, or replaced, by the first call.

    Raises:
        LockstepError: It cannot be written.
    """
    name = format_name(path.suffix or "wav")
    if path == STANDARD_OUTPUT:
        stream = Encoder(name, sample_rate, streams=True)
        yield lambda samples, last: _write_standard_output(stream.add(samples, last=last))
        return
    encoders = list[FileEncoder]()
    try:
        with ExitStack() as opened:

            def add(samples: np.ndarray, last: bool) -> None:
                if not encoders:
                    file = opened.enter_context(open(path, "w+b", buffering=0))
                    encoders.append(encoder := FileEncoder(name, sample_rate, file))
                    opened.callback(encoder.close)
                encoders[0].add(samples, last=last)

            yield add
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be written ({error.strerror})") from None


def _write_standard_output(data: bytes) -> None:
    if sys.stdout is None:
        raise LockstepError("standard output", found="cannot be written: it is closed", fix="give a file with -o")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise LockstepError("-", found=f"cannot be written ({error.strerror})") from None


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically; `LockstepError` if it cannot be written."""
    try:
        atomic_files.write(path, data)
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be written ({error.strerror})") from None
