"""A command line with a default command."""

from typing import ClassVar

import click


class DefaultCommandGroup(click.Group):
    """A group that runs `default` if no command is named; the group's help shows the default's options."""

    default: ClassVar[str]
    usages: ClassVar[tuple[str, ...]]
    """Lines of usage, after the command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Prepend the default command's name if the arguments do not begin with a command."""
        if not args or args[0] not in (*self.commands, "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show every way to call it."""
        for usage in self.usages:
            formatter.write_usage(ctx.command_path, usage)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the default command's options, then the list of commands."""
        command = self.commands[self.default]
        command.format_options(click.Context(command, info_name=self.default, parent=ctx, show_default=True), formatter)
        self.format_commands(ctx, formatter)
