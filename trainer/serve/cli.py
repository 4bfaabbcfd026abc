"""`xtts-synth` with all of its commands: those of `trainer/synth`, and `serve`. Heavy imports happen inside."""

from pathlib import Path
from typing import Any

import click

from xtts.shared.errors import LockstepError, reported
from xtts.trainer.synth.cli import checkpoint_option, main, synthesis_option

_PATH = click.Path(path_type=Path)


@main.command(context_settings={"show_default": True})
@checkpoint_option
@click.option("--host", default="127.0.0.1", help="Where to listen; beyond this machine only with a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="0 takes a free one.")
@click.option("--token", envvar="XTTS_TOKEN", show_envvar=True, help="What clients send as Authorization: Bearer.")
@synthesis_option("nfe", multiple=True, default=(4, 10, 20),
                  help="Evaluations that may be asked for, the default first; repeat it.")  # fmt: skip
@synthesis_option("solver")
@click.option("--engine", type=click.Choice(["auto", "onnx", "tensorflow"]), default="auto",
              help="What makes the mel; auto: onnx where it can, if there is no GPU.")  # fmt: skip
@click.option("--vocoder", default="griffinlim", metavar="griffinlim|onnx:FILE", help="From mel to sound.")
@click.option("--speaker-wav", type=_PATH, multiple=True, metavar="REF",
              help="A voice, for a model with voice latents; repeat it.")  # fmt: skip
@click.option("--voice-alias", "voice_aliases", multiple=True, metavar="NAME=SPEAKER",
              help="Another name of a voice; repeat it. Names that are not known get the first voice.")  # fmt: skip
@click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN",
              help="Web page that may ask, such as https://example.org, or * for all; repeat it.")  # fmt: skip
@click.option("--max-letters", type=click.IntRange(1, 20_000), default=4096, help="Longest text.")
@click.option("--max-requests", type=click.IntRange(1, 1000), default=32, help="Most that wait or speak; then 429.")
@click.option("--timeout", type=click.FloatRange(1.0, 3600.0), default=60.0, help="Most seconds without a sound.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser, where there is a display.")
def serve(checkpoint: Path, speaker_wav: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401 - of `ServerSettings`
    """Speak over HTTP as OpenAI's speech API does, with a page to try it."""
    with reported():
        from xtts.trainer.serve.settings import ServerSettings, check_settings

        settings = ServerSettings(checkpoint=checkpoint, recordings=speaker_wav, **given)
        check_settings(settings)
        try:
            from xtts.trainer.serve.app import serve as run_server
        except ModuleNotFoundError as error:
            raise LockstepError(
                "serve", found=f"{error.name} is not installed", fix="pip install 'lockstep-tts[serve]'"
            ) from None
        run_server(settings)


__all__ = ["main", "serve"]

if __name__ == "__main__":
    main()
