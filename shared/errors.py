"""`LockstepError`, the one error a user sees: where it is, what was found, what was expected, what to do."""

import importlib
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

import click


class LockstepError(Exception):
    """A mistake in the user's input, shown as `location: found, expected ...; fix`.

    Commands print it as one line without a traceback and exit with `exit_code` (1: unsound data, 2: unusable call).
    """

    def __init__(self, location: str, *, found: str, expected: str = "", fix: str = "", exit_code: int = 2) -> None:
        message = f"{location}: {found}"
        if expected:
            message += f", expected {expected}"
        if fix:
            message += f"; {fix}"
        super().__init__(message)
        self.location, self.found, self.expected, self.fix = location, found, expected, fix
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by keyword, so that a worker process can raise the error in its parent."""
        return partial(LockstepError, **vars(self)), ()


def counted_noun(count: int, noun: str) -> str:
    """Return a count with its noun in the right number: `1 clip`, `1,440 clips`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def repair_command(cache: object) -> str:
    """Return the fix for a cache (path or URL) with damaged files: a command that rebuilds them from its corpus."""
    return f"run xtts-precompute verify --cache {shlex.quote(str(cache))} --against <its corpus> --repair"


def build_command(
    cache: object, *, fresh: bool = False, corpus: str = "<its corpus>", config: str = "<its own>"
) -> str:
    """Return the fix for a cache that is older than its corpus or, with `fresh`, cannot be updated: a build command.

    The defaults of `corpus` and `config` are for the user to fill in.
    """
    option = " --fresh" if fresh else ""
    return f"run xtts-precompute build{option} --cache {shlex.quote(str(cache))} --data {corpus} --config {config}"


def import_extra(module: str, extra: str, location: str, found: str) -> ModuleType:
    """Import a library of an extra; raises `LockstepError` with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise LockstepError(location, found=found, fix=f"pip install 'lockstep-tts[{extra}]'") from None


_POINTER = b"version https://git-lfs.github.com/spec/"
POINTER = "a pointer of Git LFS, not the file: run git lfs pull"


def is_pointer(source: Path | bytes) -> bool:
    """Whether a file, or its bytes, are what Git LFS leaves in place of a file that it has not fetched."""
    if isinstance(source, bytes):
        return source.startswith(_POINTER)
    with suppress(OSError), source.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER
    return False


def refuse_pointer(path: Path) -> None:
    """Raise a `LockstepError` for a pointer of Git LFS."""
    if is_pointer(path):
        raise LockstepError(str(path), found=POINTER)


def read_text(path: Path, expected: str = "") -> str:
    """Return the text of a UTF-8 file, without a byte order mark; raises `LockstepError` if it cannot be read."""
    refuse_pointer(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise LockstepError(str(path), found=f"cannot be read ({reason})", expected=expected) from None


def read_json(path: Path, origin: str, version: int | None = None) -> dict[str, Any]:
    """The JSON object in a file; `LockstepError` if it cannot be read, or has another `format_version`.

    origin: what such a file is part of, for messages; version: None if the file has no version of its own.
    """
    if not path.exists():
        raise LockstepError(str(path), found="no such file", expected=origin)
    try:
        fields = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})") from None
    if not isinstance(fields, dict):
        raise LockstepError(str(path), found="not a JSON object")
    if version is not None and (stored := fields.get("format_version")) != version:
        raise LockstepError(str(path), found=f"format version {stored!r}", expected=str(version))
    return fields


def warn(line: str) -> None:
    """Print a warning on stderr."""
    click.echo(f"warning: {line}", err=True)


@contextmanager
def report_errors(exit_code: int | None = None) -> Iterator[None]:
    """Turn a `LockstepError` or Ctrl-C in a command into one line on stderr and the right exit code.

    Characters that stdout cannot encode are printed as escapes. exit_code: of every `LockstepError`; None for its own.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    except LockstepError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(exit_code or error.exit_code)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
