"""`xtts-record`. Heavy imports happen inside the command."""

from pathlib import Path

import click

from xtts.shared.errors import LockstepError, report_errors


@click.command(context_settings={"show_default": True})
@click.version_option(package_name="lockstep-tts")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--language", default="en", metavar="CODE", help="Language of the prompts, such as en.")
@click.option("--prompts", type=click.Path(path_type=Path), metavar="FILE",
              help="Sentences to read, one a line.  [default: 150 of ours, in de, en and fa]")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, help="Port of the page; 0 takes a free one.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
@click.argument("training", nargs=-1, metavar="[-- OPTIONS OF xtts-voice]")
def main(folder: Path, language: str, prompts: Path | None, port: int, opens: bool, training: tuple[str, ...]) -> None:
    """Record a voice of your own into FOLDER on a page of this machine, train it, and hear it."""
    with report_errors():
        from xtts.shared.languages import find_language
        from xtts.shared.system.folder_lock import exclusive
        from xtts.trainer.record.prompts import read_prompts

        texts = read_prompts(prompts, find_language(language).code)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LockstepError(str(folder), found=f"cannot be made ({error.strerror})") from None
        with exclusive(folder):
            _serve(folder, find_language(language).code, texts, port, opens, training)


def _serve(folder: Path, language: str, texts: list[str], port: int, opens: bool, training: tuple[str, ...]) -> None:
    try:
        import uvicorn

        from xtts.trainer.record.app import Recorder, make_app
        from xtts.trainer.web.address import listening_socket, open_page, page_address
    except ModuleNotFoundError as error:
        raise LockstepError(
            "record", found=f"{error.name} is not installed", fix="pip install 'lockstep-tts[serve]'"
        ) from None
    from xtts.trainer.record.making import VoiceMaker
    from xtts.trainer.record.phone import Ear
    from xtts.trainer.record.takes import Takes

    bound = listening_socket("127.0.0.1", port)
    recorder = Recorder(Takes(folder, texts), language, VoiceMaker(folder, language, training), Ear(language))
    bound.listen()  # so that a browser that is faster waits
    address = page_address("127.0.0.1", bound.getsockname()[1])
    click.echo(f"{folder}: {len(recorder.takes.texts())} of {len(texts)} sentences recorded")
    click.echo(f"record here: {address} (Ctrl-C stops; nothing is lost)")
    if opens:
        open_page(address)
    config = uvicorn.Config(
        make_app(recorder), log_level="warning", access_log=False, server_header=False, lifespan="off",
        limit_concurrency=100, timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()
