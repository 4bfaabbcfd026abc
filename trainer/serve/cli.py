"""`xtts-synth` with all of its commands: those of `trainer/synth`, and `serve`. Heavy imports happen inside."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from xtts.shared.errors import LockstepError, reported
from xtts.trainer.synth.cli import checkpoint_option, main, synthesis_option

if TYPE_CHECKING:
    from xtts.trainer.model.sampling_schedule import Solver
    from xtts.trainer.synth.synthesizer import Engine

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
@click.option("--max-letters", type=click.IntRange(1, 20_000), default=4096, help="Longest text.")
@click.option("--max-requests", type=click.IntRange(1, 1000), default=32, help="Most that wait or speak; then 429.")
@click.option("--timeout", type=click.FloatRange(1.0, 3600.0), default=60.0, help="Most seconds for a request.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser, where there is a display.")
def serve(checkpoint: Path, host: str, port: int, token: str | None, nfe: tuple[int, ...],
          solver: "Solver", engine: 'Engine | Literal["auto"]', vocoder: str,
          speaker_wav: tuple[Path, ...], max_letters: int, max_requests: int, timeout: float,
          open_page: bool) -> None:  # fmt: skip
    """Speak over HTTP as OpenAI's speech API does, with a page to try it."""
    with reported():
        from xtts.trainer.serve.settings import Limits, ServerSettings, check_settings

        settings = ServerSettings(
            checkpoint=checkpoint, host=host, port=port, token=token, nfe=nfe, solver=solver,
            engine=engine, vocoder=vocoder, recordings=speaker_wav,
            limits=Limits(letters=max_letters, requests=max_requests, seconds=timeout),
            open_page=open_page,
        )  # fmt: skip
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
