"""`xtts-doctor`: one page that says whether a cache will train at full speed on this machine, and what to change."""

import json
import os
import sys
from collections.abc import Mapping

import click

from xtts.shared.config_flags import DEFAULT_CACHE, config_options
from xtts.shared.errors import repair_command, report_errors


@click.command(context_settings={"show_default": True})
@click.version_option(package_name="lockstep-tts")
@config_options
@click.option(
    "--cache", metavar="DIR|URL",
    help=f"Cache that xtts-precompute built: a folder or a URL.  [default: {DEFAULT_CACHE}]",
)
@click.option(
    "--steps", type=click.IntRange(min=0), default=30, metavar="N",
    help="Number of training steps to time; 0 compiles nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON output, for programs.")
def main(
    config: tuple[str, ...], assignments: tuple[str, ...], flags: Mapping[str, object], cache: str | None, steps: int,
    as_json: bool,
) -> None:
    """Check whether this machine will train at full speed on this cache, and say what to change.

    Exit code 0: healthy, 1: problems, each with its fix, 2: the check could not run.
    """
    with report_errors(exit_code=2):
        from rich.console import Console

        from xtts.trainer.doctor.results import json_page, print_findings, problems_of
        from xtts.trainer.doctor.settings import load_setup
        from xtts.trainer.system.tensorflow_import import tensorflow_import

        setup = load_setup(config, assignments, flags, cache)
        errors = Console(stderr=True, highlight=False, soft_wrap=True)
        with errors.status("") as status:
            progress = status.update if errors.is_terminal else errors.print
            progress("starting TensorFlow")
            with tensorflow_import():
                import tensorflow  # noqa: F401
            from xtts.trainer.doctor.checks import run_checks
            from xtts.trainer.loop.failures import explained

            with explained(f"examining {setup.cache}", repair_command(setup.cache)):
                findings = run_checks(setup, count=steps, progress=progress)
        if as_json:
            click.echo(json.dumps(json_page(findings), indent=1, ensure_ascii=False))
        else:
            print_findings(findings, Console(width=None if os.isatty(1) else 120, highlight=False, emoji=False))
        sys.exit(1 if problems_of(findings) else 0)


if __name__ == "__main__":
    main()
