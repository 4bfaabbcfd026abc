"""`xtts-voice`: from recordings with their texts to a finished voice, in one command."""

import subprocess
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import click

from xtts.shared.config_flags import DEFAULT_CACHE, config_options
from xtts.shared.errors import report_errors
from xtts.trainer.cli import run
from xtts.trainer.system.tensorflow_import import check_tensorflow


@click.command(context_settings={"show_default": True})
@click.version_option(package_name="lockstep-tts")
@click.argument("data")
@click.option("--language", metavar="CODE", help="Language of the texts, such as en (text.language).")
@click.option("--cache", default=DEFAULT_CACHE, metavar="DIR", help="Folder of the cache, created or updated.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run.  [default: runs/SIZE-CACHE]")
@config_options
def main(
    data: str, language: str | None, cache: str, out: Path | None, config: tuple[str, ...],
    assignments: tuple[str, ...], flags: Mapping[str, object],
) -> None:  # fmt: skip
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
        build = [sys.executable, "-m", "xtts.precompute.cli", "build", "--data", data, "--cache", cache, *options]
        if built := subprocess.run(build, check=False).returncode:  # a process of its own: it may not load TensorFlow
            sys.exit(built)
        from xtts.trainer.run.run_plan import make_plan

        plan = make_plan(config, assignments, flags, cache=Path(cache), out=out, resume="", init_from=None)
        run(plan, Path(data) if Path(data).is_dir() else Path(data).parent)


if __name__ == "__main__":
    main()
