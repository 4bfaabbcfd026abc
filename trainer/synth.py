"""`xtts-synth`: not built yet; it says so."""

import click

from xtts.shared.errors import LockstepError, reported


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(arguments: tuple[str, ...]) -> None:
    """Not built yet: the command that speaks a text with a checkpoint."""
    with reported():
        raise LockstepError("xtts-synth", found="not built yet", fix="see CHANGELOG.md for what this version holds")
