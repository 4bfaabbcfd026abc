"""`xtts-voice`: from recordings with their texts to a finished voice, in one command."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import click

from xtts.shared.config_flags import DEFAULT_CACHE, config_options
from xtts.shared.errors import report_errors
from xtts.trainer.cli import run
from xtts.trainer.system.tensorflow_import import check_tensorflow

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command(context_settings={"show_default": True})
@click.version_option(package_name="lockstep-tts")
@click.argument("data")
@click.option("--language", metavar="CODE", help="Language of the texts, such as en (text.language).")
@click.option("--layout", metavar="NAME", help="Layout of the corpus, as in xtts-precompute build.")
@click.option("--columns", metavar="KEY=COLUMN,...", help="Columns of its list, as in xtts-precompute build.")
@click.option("--speakers", metavar="folders|one", help="Who speaks, as in xtts-precompute build.")
@click.option("--cache", default=DEFAULT_CACHE, metavar="DIR", help="Folder of the cache, created or updated.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run.  [default: runs/SIZE-CACHE]")
@config_options
def main(
    data: str, language: str | None, layout: str | None, columns: str | None, speakers: str | None, cache: str,
    out: Path | None, config: tuple[str, ...], assignments: tuple[str, ...], flags: Mapping[str, object],
) -> None:
    """Make a voice from DATA, a folder of recordings with their texts.

    Checks the corpus, builds its cache, trains from our voice where that helps, and leaves a page to hear the result.
    The same command continues after an interruption, and trains again after the corpus has changed.
    """
    if language:
        assignments = (*assignments, f"text.language={language}")
    settings = [*assignments, *(f"{key}={value}" for key, value in flags.items())]
    options = [*chain(*(("--config", name) for name in config)), *chain(*(("--set", pair) for pair in settings))]
    with report_errors():
        check_tensorflow()
        of_corpus = {"--layout": layout, "--columns": columns, "--speakers": speakers}
        options += chain(*((option, value) for option, value in of_corpus.items() if value))
        if built := _build(["--data", data, "--cache", cache, *options]):
            sys.exit(built)
        from xtts.trainer.run.run_plan import make_plan, set_aside_stale

        if out:
            set_aside_stale(out, Path(cache), click.echo)
        plan = make_plan(config, assignments, flags, cache=Path(cache), out=out, resume="", init_from=None)
        run(plan, Path(data) if Path(data).is_dir() else Path(data).parent)


def _build(options: Sequence[str]) -> int:
    """Run `xtts-precompute build`, which may not load TensorFlow, as a process; return its exit status.

    Signals to stop are passed on, and it alone answers them.
    """
    command = [sys.executable, "-m", "xtts.precompute.cli", "build", *options]
    with subprocess.Popen(command, process_group=0) as build:  # in a group of its own no terminal sends them twice
        numbers = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]  # as by nohup
        before = {number: signal.signal(number, lambda *_: build.terminate()) for number in numbers}
        try:
            return build.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


if __name__ == "__main__":
    main()
