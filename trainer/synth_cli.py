"""`xtts-synth`: speech from a checkpoint. Heavy imports happen inside the commands."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from xtts.shared.errors import LockstepError, report_errors
from xtts.trainer.export.command_options import checkpoint_option, synthesis_options, vocoder_option
from xtts.trainer.serve.cli import serve
from xtts.trainer.speech.synthesis_options import SynthesisOptions

_PATH = click.Path(path_type=Path)


def _is_text(word: str, before: str) -> bool:
    """Whether an argument is a text that begins with a minus, no option; before: the argument before it."""
    return bool(re.match(r"-[\d\s]|-[^o=\s][^=\s]*\s", word)) and not before.startswith("-")


class _Synth(click.Group):
    """Runs `speak` if no command is named; the group's help shows its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Prepend `speak` if the arguments do not begin with a command or an option of the group.

        A text that begins with a minus, such as "-5 degrees" or "- Milk", is no option.
        """
        texts = [word for word, before in zip(args, ["", *args], strict=False) if _is_text(word, before)]
        if texts and "--" not in args:
            args = [*(word for word in args if word not in texts), "--", *texts]
        if not args or args[0] not in (*self.commands, "--help", "--version"):
            args = ["speak", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show every way to call it."""
        for usage in ("[--ckpt DIR] [OPTIONS] [TEXT]", "COMMAND [--ckpt DIR] ..."):
            formatter.write_usage(ctx.command_path, usage)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options of `speak`, then the list of commands."""
        speak = self.commands["speak"]
        speak.format_options(click.Context(speak, info_name="speak", parent=ctx, show_default=True), formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=_Synth)
@click.version_option(package_name="lockstep-tts")
def main() -> None:
    """Speak TEXT with a trained voice: the argument, each line of --file, or standard input."""


@main.command(context_settings={"show_default": True})
@checkpoint_option
@click.argument("text", required=False)
@click.option(
    "--file", type=_PATH, metavar="LINES.txt", help="Text file, one line per sound file; -o is then a folder."
)
@click.option(
    "-o", "--out", type=_PATH,
    help="Sound file (.wav, .flac, .mp3, .ogg, .opus), - for a wav on standard output, or with --file a folder.  "
    "[default: out.wav]",
)
@synthesis_options("nfe", "solver", "temperature", "seed", "speed", "loudness")
@click.option("--timestamps", type=_PATH, metavar="FILE.json", help="File for the times of the words.")
@vocoder_option
@click.option(
    "--speaker", metavar="NAME", help="Speaker, if the voice has several.  [default: the first of the language]"
)
@click.option("--language", metavar="CODE", help="Language, if the voice has several.  [default: the speaker's]")
@click.option("--speaker-wav", type=_PATH, multiple=True, metavar="REF",
              help="Recording to imitate, or several of one person, with a model that imitates.")
@click.option("--lexicon", type=_PATH, metavar="FILE",
              help="File of pronunciations, a line each: word, tab, [[IPA]] or a respelling.")
def speak(checkpoint: Path, **given: Any) -> None:  # noqa: ANN401 - those of `speak.speak`, and of synthesis
    """Speak TEXT. The word `speak` may be omitted."""
    with report_errors():
        options = _taken(given)
        from xtts.trainer.export.exported_voice import exported_voice
        from xtts.trainer.speech.speak import speak as run

        run(partial(exported_voice, checkpoint, partial(click.echo, err=True)), options, **given)


def _taken(given: dict[str, Any]) -> SynthesisOptions:
    """The synthesis options, removed from a command's options; `LockstepError` for a value that cannot be used."""
    return SynthesisOptions(**{name: given.pop(name) for name in SynthesisOptions.model_fields if name in given})


@main.command(context_settings={"show_default": True})
@checkpoint_option
@click.option(
    "--cache", metavar="DIR|URL", help="Cache that has the sentences: a folder or a URL.  [default: the run's own]"
)
@click.option(
    "--split", type=click.Choice(["validation", "train"]), default="validation",
    help="Sentences to speak: held out, or trained on.",
)
@click.option("--limit", type=click.IntRange(1), default=100, metavar="N", help="Largest number of sentences to speak.")
@click.option(
    "--judge", is_flag=True,
    help="Add character errors, predicted opinions and similarity to the speaker (extra judge).",
)
@click.option("--asr", default="base", metavar="SIZE|DIR",
              help="Whisper for the character errors: a size to download, or a folder.")
@click.option("--data", type=_PATH, metavar="DIR", help="Corpus of the cache, to judge its recordings as well.")
@vocoder_option
@click.option(
    "--json", "json_file", type=_PATH, metavar="FILE.json",
    help="File for the figures, including those of every sentence.",
)
@synthesis_options("nfe", "solver", "temperature", "seed")
def evaluate(checkpoint: Path, cache: str | None, **given: Any) -> None:  # noqa: ANN401 - of `evaluate.evaluate`
    """Print how good a voice is: its speech of held-out sentences against their recordings."""
    with report_errors():
        options = _taken(given)
        from xtts.trainer.evaluation.evaluate import evaluate as run
        from xtts.trainer.export.exported_voice import exported_voice
        from xtts.trainer.stored.stored_model import open_model

        run(open_model(checkpoint), partial(exported_voice, checkpoint, click.echo), options, cache=cache, **given)


_FORMAT_OPTIONS = {
    "safetensors": ("license", "evaluation", "about", "float16"),
    "onnx": ("nfe", "solver", "language", "speaker_wav", "float16"),
    "piper": ("nfe", "solver", "loudness", "language", "speaker_wav", "float16"),
}
"""The options of `export` that belong to each format."""


@main.command(context_settings={"show_default": True})
@checkpoint_option
@click.argument("out", type=_PATH)
@click.option(
    "--format", "formats", type=click.Choice(list(_FORMAT_OPTIONS)), multiple=True, default=["onnx"],
    help="Format: onnx to speak, with Lockstep, onnxruntime and sherpa-onnx; safetensors to train on; piper for Piper "
    "and Home Assistant. Repeat it for several in one folder, all but piper.",
)
@synthesis_options("nfe", "solver", "loudness")
@click.option("--license", metavar="ID", help="Licence of voice and recordings, for the card.  [default: not stated]")
@click.option("--evaluation", type=_PATH, metavar="FILE.json", help="Figures for the model card, from evaluate --json.")
@click.option("--about", type=_PATH, metavar="FILE.md", help="Text for the model card, such as who speaks.")
@click.option("--float16", is_flag=True, help="16-bit weights, half the size.")
@click.option(
    "--language", metavar="CODE",
    help="Language to fix in the graph of a voice with several.  [default: an input of an onnx graph; piper needs one]",
)
@click.option("--speaker-wav", type=_PATH, multiple=True, metavar="REF",
              help="Recording that the graph is to imitate, of a model that imitates.")
@click.option(
    "--vocoder", type=_PATH, metavar="FILE.onnx",
    help="Vocoder of the voice.  [default: that of an exported folder; without one, ours for mel profile hifigan]",
)
def export(checkpoint: Path, out: Path, formats: tuple[str, ...], vocoder: Path | None, **given: Any) -> None:  # noqa: ANN401 - of `ExportOptions`, and of synthesis
    """Export a voice, or a vocoder, into the folder OUT, for other programs or to pass it on."""
    with report_errors():
        _refuse_options_of_other_formats(formats)
        synthesis = _taken(given)
        from xtts.trainer.export.export_formats import ExportOptions, ExportRequest
        from xtts.trainer.run.finish import export as run

        options = ExportOptions(**given)
        run(checkpoint, ExportRequest(out=out, formats=formats, synthesis=synthesis, options=options, vocoder=vocoder))


def _refuse_options_of_other_formats(chosen: tuple[str, ...]) -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        fitting = [name for name, options in _FORMAT_OPTIONS.items() if parameter.name in options]
        given = context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and fitting and not set(chosen) & set(fitting):
            found, expected = f"together with --format {' and '.join(chosen)}", f"--format {' or '.join(fitting)}"
            raise LockstepError(parameter.opts[0], found=found, expected=expected)


main.add_command(serve)

if __name__ == "__main__":
    main()
