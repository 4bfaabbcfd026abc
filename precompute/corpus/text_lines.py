"""Lines of text files, packed by gzip or not, one after the other."""

import gzip
import shlex
import zlib
from collections.abc import Iterator
from pathlib import Path

from xtts.shared.errors import LockstepError

_MOST_LINE_BYTES = 2**24


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 file, with or without byte order mark and carriage returns, packed by gzip or not.

    Memory holds one line.
    """
    if path.is_fifo():
        raise LockstepError(str(path), found="a pipe", expected="a file of lines")
    # str.splitlines would also break at U+2028 and its like, which occur inside texts.
    for number, line in enumerate(_raw_lines(path), start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise LockstepError(f"{path}:{number}", found="not UTF-8", fix="convert the file to UTF-8") from None
        text = text.removesuffix("\n").rstrip("\r")
        if "\r" in text:
            fix = f"convert it: tr '\\r' '\\n' < {shlex.quote(str(path))} > NEW"
            raise LockstepError(f"{path}:{number}", found="lines that end in a carriage return alone", fix=fix)
        yield text


def filled_lines(path: Path) -> Iterator[tuple[str, str]]:
    """(`FILE:NUMBER`, line) of the lines that are not blank."""
    return ((f"{path}:{number}", line) for number, line in enumerate(read_lines(path), start=1) if line.strip())


def first_line(path: Path) -> str:
    """The first line that is not blank, without reading the others; empty where there is none."""
    return next((line for line in read_lines(path) if line.strip()), "")


def _raw_lines(path: Path) -> Iterator[bytes]:
    """The lines as they are stored, each with its line feed."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(_MOST_LINE_BYTES + 1):
                if len(line) > _MOST_LINE_BYTES:
                    expected = f"at most {_MOST_LINE_BYTES:,} bytes"
                    raise LockstepError(str(path), found="a line that is longer", expected=expected)
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LockstepError(str(path), found=f"cannot be unpacked ({error})", expected="a gzip file") from None
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise LockstepError(str(path), found=reason, expected="lines of clips") from None
