"""A command line whose commonest command needs no name."""

from typing import ClassVar

import click


class DefaultCommandGroup(click.Group):
    """A group of which `default` runs where no command is named; its options stand in the group's own help."""

    default: ClassVar[str]
    usages: ClassVar[tuple[str, ...]]
    """Lines of the usage, after the command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name before arguments that begin with none."""
        if not args or args[0] not in (*self.commands, "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every way to call it."""
        for usage in self.usages:
            formatter.write_usage(ctx.command_path, usage)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The default command's options, then the list of commands."""
        command = self.commands[self.default]
        command.format_options(click.Context(command, info_name=self.default, parent=ctx, show_default=True), formatter)
        self.format_commands(ctx, formatter)
