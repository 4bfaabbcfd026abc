"""`xtts-doctor`: one page that says whether a cache will train at full speed here, and what to change."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xtts.shared.config_flags import DEFAULT_CACHE, config_options
from xtts.shared.errors import LockstepError, repair_command, reported
from xtts.trainer.system.command_group import DefaultCommandGroup

if TYPE_CHECKING:
    from xtts.trainer.doctor.finding import Report
    from xtts.trainer.doctor.subject import Subject
    from xtts.trainer.engine.engine import TracedSteps

StepsOf = Callable[["Subject"], "TracedSteps | None"]
"""Gives steps that are compiled already, as for `build_engine`: the object of the command, none for users."""
_PATH = click.Path(path_type=Path)
_cache_option = click.option("--cache", default=DEFAULT_CACHE, metavar="DIR|URL", help="Cache of stage 1.")
_json_option = click.option("--json", "as_json", is_flag=True, help="The same content as JSON.")


class _Doctor(DefaultCommandGroup):
    default = "examine"
    usages = ("[--cache DIR] [--config FILE] [OPTIONS]", "trace|graph MODULE:NAME", "profile [OPTIONS]")


@click.group(cls=_Doctor)
def main() -> None:
    """Say whether this machine, cache and configuration train at full speed, and what to change.

    Exit code 0: healthy, 1: something to act on, 2: unusable.
    """


@main.command(context_settings={"show_default": True})
@config_options
@_cache_option
@click.option("--steps", type=click.IntRange(min=0), default=30, help="Steps to measure; 0 compiles none.")
@_json_option
@click.option("--apply", "overlay", type=_PATH, metavar="FILE", help="Write the advised settings as an overlay.")
@click.option("--find-batch-size", "search", is_flag=True, help="Find the largest batch that fits into memory.")
@click.option("--run", type=_PATH, metavar="DIR", help="A run on this cache: do its held-out losses rise?")
@click.pass_obj
def examine(
    steps_of: StepsOf | None, config: tuple[str, ...], assignments: tuple[str, ...], flags: Mapping[str, object],
    cache: str, steps: int, as_json: bool, overlay: Path | None, search: bool, run: Path | None,
) -> None:  # fmt: skip
    """Examine machine, cache and configuration; this command needs no name."""
    with _usable():
        from xtts.trainer.doctor.advice import write_overlay
        from xtts.trainer.doctor.subject import load_subject

        subject = load_subject(config, assignments, flags, cache)
        with _progress() as progress:
            _start_tensorflow()
            from xtts.trainer.doctor.examination import examine as run_examination
            from xtts.trainer.engine.failures import explained

            with explained(f"examining {cache}", repair_command(cache)):
                traced = steps_of(subject) if steps_of else None
                report = run_examination(subject, count=steps, search=search, progress=progress, run=run, traced=traced)
        _show(report, as_json)
        if overlay is not None:
            written = write_overlay(overlay, report.findings)
            said = f"{overlay} written: give it as a second --config" if written else "no setting to change: no overlay"
            print(said, file=sys.stderr)
        sys.exit(0 if report.healthy else 1)


@main.command(context_settings={"show_default": True})
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option("--calls", type=click.IntRange(min=2), default=20, help="How often to call it.")
@_json_option
def trace(target: str, calls: int, as_json: bool) -> None:
    """Call your FUNCTION repeatedly, and name what makes a tf.function retrace.

    FUNCTION takes no argument, or the number of the call, and makes one step as your training does. Every tf.function
    that it calls is watched.
    """
    with _usable():
        _start_tensorflow()
        from xtts.trainer.doctor.user_code.trace import watch_calls

        _show(report := watch_calls(target, calls), as_json)
        sys.exit(0 if report.healthy else 1)


@main.command()
@click.argument("target", metavar="MODULE:NAME")
@_json_option
def graph(target: str, as_json: bool) -> None:
    """Look for Python and unknown shapes in your graph.

    NAME is a tf.data.Dataset, a tf.function with an input_signature, or a function without arguments that returns one.
    """
    with _usable():
        _start_tensorflow()
        from xtts.trainer.doctor.user_code.load import examine_graph

        _show(report := examine_graph(target), as_json)
        sys.exit(0 if report.healthy else 1)


@main.command(context_settings={"show_default": True})
@config_options
@_cache_option
@click.option("--steps", type=click.IntRange(min=1), default=10, help="Steps to profile, after the compilation.")
@click.option("--out", type=_PATH, default=Path("profile"), metavar="DIR", help="Where TensorBoard finds the trace.")
@_json_option
@click.pass_obj
def profile(
    steps_of: StepsOf | None, config: tuple[str, ...], assignments: tuple[str, ...], flags: Mapping[str, object],
    cache: str, steps: int, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Trace some steps with TensorFlow's profiler: how busy the device is, and with what."""
    with _usable():
        from xtts.trainer.doctor.subject import load_subject

        subject = load_subject(config, assignments, flags, cache)
        with _progress() as progress:
            _start_tensorflow()
            from xtts.trainer.doctor.user_code.profile import profile_steps, report_of
            from xtts.trainer.doctor.workload import Workload
            from xtts.trainer.engine.failures import explained

            progress(f"compiling, then profiling {steps} steps")
            with explained(f"profiling {cache}", repair_command(cache)):
                workload = Workload(subject, steps_of(subject) if steps_of else None)
                report = report_of(profile_steps(workload, steps, out), steps)
        _show(report, as_json, advice=False)
        if not as_json:
            print(f"look closer: tensorboard --logdir {out}   (pip install tensorboard-plugin-profile)")


@contextmanager
def _usable() -> Iterator[None]:
    """Exit with code 2 if something cannot be examined."""
    with reported():
        try:
            yield
        except LockstepError as error:
            error.exit_code = 2
            raise


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A function that shows progress on stderr, if that is a terminal."""
    from rich.console import Console

    with Console(stderr=True).status("starting TensorFlow") as status:
        yield status.update


def _start_tensorflow() -> None:
    from xtts.trainer.system.tensorflow_import import tensorflow_import

    with tensorflow_import():
        import tensorflow  # noqa: F401


def _show(report: "Report", as_json: bool, *, advice: bool = True) -> None:
    from rich.console import Console

    from xtts.trainer.doctor.page import print_json, print_report, print_sections

    if as_json:
        print_json(report)
    else:
        show = print_report if advice else print_sections
        # No emoji: rich would read one in the middle of my_steps:train:.
        show(report, Console(width=None if os.isatty(1) else 120, highlight=False, emoji=False))


if __name__ == "__main__":
    main()
