"""`xtts-synth serve`. Heavy imports happen inside the command."""

from pathlib import Path
from typing import Any

import click

from xtts.shared.errors import LockstepError, report_errors
from xtts.trainer.export.command_options import checkpoint_option, synthesis_options, vocoder_option

_PATH = click.Path(path_type=Path)


@click.command(context_settings={"show_default": True})
@checkpoint_option
@click.option("--host", default="127.0.0.1", help="Address to listen on; beyond this machine it needs a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Port to listen on; 0 takes a free one.")
@click.option("--wyoming", type=click.IntRange(1, 65535), metavar="PORT",
              help="Port of the Wyoming protocol, for Home Assistant; it has no token.")
@click.option("--token", envvar="XTTS_TOKEN", show_envvar=True,
              help="Secret that clients send as Authorization: Bearer.")
@synthesis_options("nfe", multiple=True, default=(4, 10),
                  help="Numbers of decoder evaluations that clients may request, the default first.")
@synthesis_options("solver", "loudness")
@vocoder_option
@click.option("--speaker-wav", type=_PATH, multiple=True, metavar="REF",
              help="Recording of a voice to offer, with a model that imitates; may be repeated.")
@click.option("--max-letters", type=click.IntRange(1, 20_000), default=4096, metavar="N",
              help="Longest text in characters, numbers written as words.")
@click.option("--max-requests", type=click.IntRange(1, 1000), default=32, metavar="N",
              help="Largest number of requests at once; more get status 429.")
@click.option("--timeout", type=click.FloatRange(1.0, 3600.0), default=60.0, metavar="SECONDS",
              help="Longest wait for the first sound, and for each further one.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
def serve(checkpoint: Path, **options: Any) -> None:  # noqa: ANN401 - of `ServerSettings`
    """Serve a voice over HTTP: a page, and OpenAI's speech API."""
    with report_errors():
        from xtts.trainer.serve.settings import ServerSettings, check_server_settings

        settings = ServerSettings(**options)
        check_server_settings(settings)
        from xtts.trainer.export.exported_voice import exported_voice

        try:
            from xtts.trainer.serve.app import serve as run_server
        except ModuleNotFoundError as error:
            raise LockstepError(
                "serve", found=f"{error.name} is not installed", fix="pip install 'lockstep-tts[serve]'"
            ) from None
        run_server(exported_voice(checkpoint, click.echo), settings)
