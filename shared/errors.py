"""The one error a user sees: where, expected, found, fix."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper

import click


class LockstepError(Exception):
    """A mistake in what was given to Lockstep, shown as `where: found, expected; fix`.

    Commands print it as one line without a traceback and exit with `exit_code`
    (1 unsound, 2 unusable call).
    """

    def __init__(self, where: str, *, found: str, expected: str = "", fix: str = "", exit_code: int = 2) -> None:
        message = f"{where}: {found}"
        if expected:
            message += f", expected {expected}"
        if fix:
            message += f"; {fix}"
        super().__init__(message)
        self.where, self.found, self.expected, self.fix = where, found, expected, fix
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by keyword, so that the error crosses from a worker process."""
        rebuild = partial(
            LockstepError, self.where, found=self.found, expected=self.expected, fix=self.fix, exit_code=self.exit_code
        )
        return rebuild, ()


def repair_command(cache: object) -> str:
    """The fix of a cache, a path or a URL, with broken files; only its corpus knows what they held."""
    return f"run xtts-precompute verify --cache {shlex.quote(str(cache))} --against <its corpus> --repair"


def build_command(
    cache: object, *, fresh: bool = False, corpus: str = "<its corpus>", config: str = "<its own>"
) -> str:
    """The fix of a cache that its corpus has left behind, or with `fresh` of one that nothing can be taken from.

    `corpus` and `config` stand where the user has to fill in.
    """
    option = " --fresh" if fresh else ""
    return f"run xtts-precompute build{option} --cache {shlex.quote(str(cache))} --data {corpus} --config {config}"


def warn(line: str) -> None:
    """Print a warning on stderr."""
    click.echo(f"warning: {line}", err=True)


@contextmanager
def reported() -> Iterator[None]:
    """Turn a `LockstepError` or Ctrl-C inside a command into one line on stderr and the right exit code.

    Characters that stdout cannot encode are printed as escapes.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    except LockstepError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
