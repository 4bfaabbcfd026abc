"""Reading the lines of text files."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from xtts.shared.errors import LockstepError, refuse_pointer

_MOST_LINE_BYTES = 2**24


def filled_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (location, line) of the lines of a UTF-8 file that are not blank; a location is `FILE:LINE`.

    Lines come without byte order mark and carriage returns; memory holds one. Raises a `LockstepError` for any other
    encoding, carriage returns within a line, or lines of more than 16 MiB.
    """
    if path.is_fifo():
        raise LockstepError(str(path), found="a pipe", expected="a file of lines")
    refuse_pointer(path)
    # str.splitlines would also break at U+2028 and its like, which occur inside texts.
    for count, line in enumerate(_raw_lines(path), start=1):
        location = f"{path}:{count}"
        try:
            text = line.decode("utf-8-sig" if count == 1 else "utf-8").removesuffix("\n").rstrip("\r")
        except UnicodeDecodeError:
            raise LockstepError(location, found="not UTF-8", fix="convert the file to UTF-8") from None
        if "\r" in text:
            fix = f"convert it: tr '\\r' '\\n' < {shlex.quote(str(path))} > NEW"
            raise LockstepError(location, found="lines that end in a carriage return alone", fix=fix)
        if text.strip():
            yield location, text


def first_line(path: Path) -> str:
    """Return the first line that is not blank, reading no further; empty if there is none."""
    return next((line for _, line in filled_lines(path)), "")


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the undecoded lines, each with its line feed."""
    try:
        with path.open("rb") as file:
            while line := file.readline(_MOST_LINE_BYTES + 1):
                if len(line) > _MOST_LINE_BYTES:
                    expected = f"at most {_MOST_LINE_BYTES:,} bytes"
                    raise LockstepError(str(path), found="a line that is longer", expected=expected)
                yield line
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise LockstepError(str(path), found=reason, expected="lines of clips") from None
