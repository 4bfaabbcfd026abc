"""Lines of text files, packed by gzip or not."""

import gzip
import zlib
from pathlib import Path

from xtts.shared.errors import LockstepError

_MOST_BYTES = 2**30  # of an unpacked manifest: gzip packs zeros a thousandfold


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file, with or without byte order mark and carriage returns, packed by gzip or not."""
    if path.is_fifo():
        raise LockstepError(str(path), found="a pipe", expected="a file of lines")
    try:
        data = _read_packed(path) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise LockstepError(str(path), found=reason, expected="lines of clips") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LockstepError(f"{path}:{line}", found="not UTF-8", fix="convert the file to UTF-8") from None
    # str.splitlines would also break at U+2028 and its like, which occur inside texts.
    return [line.removesuffix("\r") for line in text.split("\n")]


def read_text(path: Path) -> str:
    """The text of a file of one clip, its lines joined by spaces."""
    return " ".join(filter(None, (line.strip() for line in read_lines(path))))


def filled_lines(path: Path) -> list[tuple[str, str]]:
    """(`FILE:NUMBER`, line) of the lines that are not blank."""
    return [(f"{path}:{number}", line) for number, line in enumerate(read_lines(path), start=1) if line.strip()]


def first_line(path: Path) -> str:
    """The first line that is not blank, without reading the others; empty where there is none."""
    if path.is_file():
        try:
            with path.open(encoding="utf-8-sig", newline="\n") as file:
                return next((line.rstrip("\r\n") for line in file if line.strip()), "")
        except (OSError, UnicodeDecodeError):
            pass  # `read_lines` says where
    return next((line for line in read_lines(path) if line.strip()), "")


def _read_packed(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LockstepError(str(path), found=f"cannot be unpacked ({error})", expected="a gzip file") from None
    if len(data) > _MOST_BYTES:
        raise LockstepError(str(path), found=f"more than {_MOST_BYTES} bytes unpacked", expected="a manifest")
    return data
