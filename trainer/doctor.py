"""`xtts-doctor`: not built yet; it says so."""

import click

from xtts.shared.errors import LockstepError, reported


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(arguments: tuple[str, ...]) -> None:
    """Not built yet: the command that says whether this machine, cache and config will train at full speed."""
    with reported():
        raise LockstepError("xtts-doctor", found="not built yet", fix="see CHANGELOG.md for what this version holds")
