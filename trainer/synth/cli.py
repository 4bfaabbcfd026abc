"""`xtts-synth`: speech from a checkpoint. Heavy imports happen inside the commands."""

import difflib
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from xtts.shared.errors import LockstepError, reported
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions, accepted

_PATH = click.Path(path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., object])


_OWN = ("--help", "--version")
_NEAR = 0.81
"""Likeness of a word and the command that it may be meant as: "exprot" has 0.83, "seven" and `serve` have 0.8."""


class _Synth(click.Group):
    """Runs `speak` if no command is named; the group's help shows its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Prepend `speak` if the arguments do not begin with a command or an option of the group."""
        if not args or args[0] not in (*self.commands, *_OWN):
            with reported():
                self._refuse_command(ctx, args)
            args = ["speak", *args]
        return super().parse_args(ctx, args)

    def _refuse_command(self, ctx: click.Context, args: list[str]) -> None:
        """Raise `LockstepError` for a text that may be meant as a command: it would be spoken over out.wav."""
        speak = self.commands["speak"]
        anything = click.Context(speak, info_name="speak", parent=ctx, ignore_unknown_options=True)
        text = speak.make_parser(anything).parse_args([*args])[0].get("text")
        near = difflib.get_close_matches(str(text).lower(), self.commands, n=1, cutoff=_NEAR)
        if near and "--" not in args:
            raise LockstepError(
                str(text), found="a text of one word that is like a command",
                fix=f"did you mean xtts-synth {near[0]}? To speak it: xtts-synth speak {text}",
            )  # fmt: skip

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show every way to call it."""
        for usage in ("[--ckpt DIR] [OPTIONS] [TEXT]", "COMMAND [--ckpt DIR] ..."):
            formatter.write_usage(ctx.command_path, usage)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options of `speak`, then the list of commands."""
        speak = self.commands["speak"]
        speak.format_options(click.Context(speak, info_name="speak", parent=ctx, show_default=True), formatter)
        self.format_commands(ctx, formatter)


_BEST = "best"


def _note_best(context: click.Context, _: click.Parameter, best: bool) -> None:
    context.meta[_BEST] = best


def _chosen(context: click.Context, _: click.Parameter, path: Path | None) -> Path:
    """The newest run where none is named, and its best checkpoint where that is asked for."""
    with reported():
        from xtts.trainer.run.checkpoint import best_checkpoint, newest_run

        if path is None:
            path = newest_run()
            click.echo(f"--ckpt {path}: the run that was trained last")
        return best_checkpoint(path) if context.meta[_BEST] else path


def checkpoint_option(command: _Command) -> _Command:
    """Adds --ckpt, and --best beside it."""
    best = click.option(
        "--best", is_flag=True, is_eager=True, expose_value=False, callback=_note_best,
        help="Of a run folder the checkpoint with the lowest validation loss, not the newest.",
    )  # fmt: skip
    path = click.option(
        "--ckpt", "checkpoint", type=_PATH, metavar="DIR", callback=_chosen,
        help="A run folder, one checkpoint, or an exported folder.  [default: the newest run in runs/]",
    )  # fmt: skip
    return path(best(command))


class _Value(click.ParamType[Any]):
    """A value of `SynthesisOptions`, which judges it: a number where it looks like one."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """A text of the command line as a number, if it is one."""
        for kind in (int, float):
            with suppress(ValueError):
                return kind(value) if isinstance(value, str) else value
        return value


def synthesis_option(field: str, **changes: Any) -> Callable[[_Command], _Command]:  # noqa: ANN401 - of click.option
    """The command's option for a field of `SynthesisOptions`, with its default, range and description."""
    described = SynthesisOptions.model_fields[field]
    names = ("--nfe", "--steps") if field == "nfe" else (f"--{field}",)
    told = {"default": described.default, "help": f"{described.description}  [{accepted(field)}]"}
    return click.option(*names, field, type=_Value(), metavar="VALUE", **(told | changes))


def _with_options(*fields: str) -> Callable[[_Command], _Command]:
    """Adds options of synthesis in this order."""
    return lambda command: reduce(lambda made, field: synthesis_option(field)(made), reversed(fields), command)


@click.group(cls=_Synth)
@click.version_option(package_name="lockstep-tts")
def main() -> None:
    """Speak TEXT with a checkpoint: the argument, each line of --file, or standard input."""


@main.command(context_settings={"show_default": True})
@checkpoint_option
@click.argument("text", required=False)
@click.option("--file", type=_PATH, metavar="LINES.txt", help="One text a line; -o is then a folder.")
@click.option(
    "-o",
    "--out",
    type=_PATH,
    help="The .wav, .flac, .mp3 or .ogg, or the folder of --file for 0001.wav and so on.  [default: out.wav]",
)
@_with_options("nfe", "solver", "temperature", "seed", "speed", "seconds")
@click.option("--mel-out", type=_PATH, metavar="FILE.npy", help="The log-mel too, float32[T, M].")
@click.option("--timestamps", type=_PATH, metavar="FILE.json|.srt",
              help="When each word is spoken, or subtitles of a sentence each.")  # fmt: skip
@click.option("--vocoder", default="griffinlim", metavar="griffinlim|onnx:FILE", help="From mel to sound.")
@click.option("--speaker", metavar="NAME", help="Of a corpus of several; the first where none is named.")
@click.option("--language", metavar="CODE", help="Of a corpus of several; the first where none is named.")
@click.option("--speaker-wav", type=_PATH, multiple=True, metavar="REF",
              help="Whose voice, for a model with voice latents; repeat it for the mean of several.")  # fmt: skip
@click.option("--lexicon", type=_PATH, metavar="FILE",
              help="How words are read, before the voice's own: word, tab, [[phonemes]] or respelling.")  # fmt: skip
@click.option("--engine", type=click.Choice(["tensorflow", "onnx"]),
              help="What makes the mel.  [default: onnx where there is a graph, in the folder or kept of "
              "an earlier use; else tensorflow]")  # fmt: skip
def speak(checkpoint: Path, **given: Any) -> None:  # noqa: ANN401 - those of `speak.speak`, and of synthesis
    """Speak TEXT; this command needs no name."""
    with reported():
        options = _taken(given)
        from xtts.trainer.synth.speak import speak as run

        run(checkpoint, options, **given)


def _taken(given: dict[str, Any]) -> SynthesisOptions:
    """The options of synthesis, taken out of those of a command; `LockstepError` for a value that cannot be used."""
    return SynthesisOptions(**{name: given.pop(name) for name in SynthesisOptions.model_fields if name in given})


@main.command(context_settings={"show_default": True})
@checkpoint_option
@click.option("--cache", metavar="DIR|URL", help="Whose sentences.  [default: the run's own]")
@click.option("--split", type=click.Choice(["validation", "train"]), default="validation", help="Which of them.")
@click.option("--limit", type=click.IntRange(1), default=100, help="Most sentences to speak; all recordings compete.")
@click.option("--json", "json_file", type=_PATH, metavar="FILE.json", help="The figures of every sentence.")
@_with_options("nfe", "solver", "temperature", "seed")
def evaluate(checkpoint: Path, cache: str | None, **given: Any) -> None:  # noqa: ANN401 - of `evaluate.evaluate`
    """Compare held-out sentences, spoken, with the recordings of all of them."""
    with reported():
        options = _taken(given)
        from xtts.shared.storage.urls import location
        from xtts.trainer.synth.evaluate import evaluate as run

        run(checkpoint, options, cache=location(cache) if cache else None, **given)


@main.command()
@checkpoint_option
def info(checkpoint: Path) -> None:
    """Say what a checkpoint is: speakers, languages, mel profile, size, steps, corpus."""
    with reported():
        from xtts.trainer.synth.info import info as run

        run(checkpoint)


_FORMAT_OPTIONS = {
    "saved-model": ("nfe", "solver"),
    "safetensors": ("license_name", "evaluation", "about", "float16"),
    "onnx": ("nfe", "solver", "language", "speaker_wav", "float16"),
}
"""The options of `export` that belong to each format."""


@main.command(context_settings={"show_default": True})
@checkpoint_option
@click.argument("out", type=_PATH)
@click.option(
    "--format", "formats", type=click.Choice(list(_FORMAT_OPTIONS)), multiple=True, default=["saved-model"],
    help="For stock TensorFlow; for --ckpt and --init-from elsewhere, with a model card; for onnxruntime. "
    "Repeat it for several in one folder.",
)  # fmt: skip
@_with_options("nfe", "solver")
@click.option("--license", "license_name", metavar="ID", help="safetensors: for the card.  [default: not stated]")
@click.option("--evaluation", type=_PATH, metavar="FILE.json", help="safetensors: of evaluate --json.")
@click.option("--about", type=_PATH, metavar="FILE.md", help="safetensors: text for the card, such as who speaks.")
@click.option("--float16", is_flag=True, help="safetensors, onnx: weights of 16 bits, half of the size.")
@click.option("--language", metavar="CODE", help="onnx: the one that is spoken, of a model of several.")
@click.option("--speaker-wav", type=_PATH, multiple=True, metavar="REF",
              help="onnx: its voice, of a model with voice latents; repeat it for the mean of several.")  # fmt: skip
def export(checkpoint: Path, out: Path, formats: tuple[str, ...], license_name: str | None,
           evaluation: Path | None, about: Path | None, float16: bool, language: str | None,
           speaker_wav: tuple[Path, ...], **given: Any) -> None:  # fmt: skip  # noqa: ANN401 - of synthesis
    """Write the model as a SavedModel, as a folder to pass on, or as an ONNX graph."""
    with reported():
        _refuse_options_of_other_formats(formats)
        options = _taken(given)
        from xtts.trainer.synth.export.export_command import export as run
        from xtts.trainer.synth.export.model_card import CardOptions
        from xtts.trainer.synth.export.onnx_model import OnnxOptions

        card = CardOptions(license=license_name, evaluation=evaluation, about=about, float16=float16)
        onnx = OnnxOptions(language=language, speaker_wav=speaker_wav, float16=float16)
        run(checkpoint, out, options, formats=formats, card=card, onnx=onnx)


def _refuse_options_of_other_formats(chosen: tuple[str, ...]) -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        fitting = [name for name, options in _FORMAT_OPTIONS.items() if parameter.name in options]
        given = context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and fitting and not set(chosen) & set(fitting):
            found, expected = f"together with --format {' and '.join(chosen)}", f"--format {' or '.join(fitting)}"
            raise LockstepError(parameter.opts[0], found=found, expected=expected)


if __name__ == "__main__":
    main()
