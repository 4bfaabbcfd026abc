"""Options that several commands of `xtts-synth` share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from xtts.shared.errors import report_errors
from xtts.trainer.speech.synthesis_options import SynthesisOptions, accepted, as_number, option_name

_Command = TypeVar("_Command", bound=Callable[..., object])


def _chosen(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path:
    """The newest run where none is named."""
    with report_errors():
        from xtts.trainer.speech.vocoder import OUR_VOICE
        from xtts.trainer.stored.checkpoint import RUNS, newest_run

        if path is None:
            run = newest_run()
            path, why = (run, "the most recent run") if run else (OUR_VOICE, f"our voice, as {RUNS}/ has no run")
            click.echo(f"--ckpt {path}: {why}", err=True)
        return path


checkpoint_option = click.option(
    "--ckpt", "checkpoint", type=click.Path(path_type=Path), metavar="DIR", callback=_chosen,
    help="Model: a run folder, a checkpoint folder or an exported folder.  [default: the newest run in runs/, or "
    "our voice]",
)
vocoder_option = click.option(
    "--vocoder",
    metavar="griffinlim|onnx:FILE",
    help="Vocoder: Griffin-Lim, or an ONNX file for this mel profile.  [default: the voice's own; without one, ours "
    "for mel profile hifigan, griffinlim for others]",
)


def synthesis_options(*fields: str, **changes: Any) -> Callable[[_Command], _Command]:  # noqa: ANN401 - of click.option
    """Adds options for fields of `SynthesisOptions`, in this order, with their defaults, ranges and descriptions."""

    def add(command: _Command) -> _Command:
        for field in reversed(fields):
            described = SynthesisOptions.model_fields[field]
            attributes = {"default": described.default, "help": f"{described.description}  [{accepted(field)}]"}
            attributes |= {"type": as_number, "metavar": "VALUE"} | changes
            command = click.option(option_name(field), field, **attributes)(command)
        return command

    return add
