"""Export of a model: RUN/voice/ at the end of a run, and every other one."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.export.export_formats import PIPER, ExportRequest
from xtts.trainer.kinds.all_kinds import kind_of
from xtts.trainer.speech.output_files import new_folder
from xtts.trainer.stored.stored_model import open_model


def export(checkpoint: Path, request: ExportRequest, say: Callable[[str], object] = click.echo) -> None:
    """Write the folder `request.out` atomically, and report its contents.

    Raises:
        LockstepError: It exists or cannot be written, or the model cannot be exported in these formats.
    """
    if PIPER in request.formats and len(set(request.formats)) > 1:
        found = f"together with {' and '.join(sorted({*request.formats} - {PIPER}))}"
        raise LockstepError(
            "--format piper", found=found, expected="alone: Home Assistant takes each graph for a voice"
        )
    with new_folder(request.out) as folder:
        stored = open_model(checkpoint)
        say(f"exporting {stored.checkpoint}: up to a minute")
        described = kind_of(stored.config()).export(stored, folder, request)
    for each in described:
        say(f"{request.out}: {stored.checkpoint} as {each}")


def finish_run(path: Path, console: Console, data: Path | None = None) -> None:
    """Export the newest checkpoint of a run into RUN/voice/, in place of an earlier one, and measure it.

    data: folder of the corpus, if known, for the recordings of the listening page.

    Raises:
        LockstepError: The folder is not a run, or cannot be written.
    """
    stored = open_model(path)
    if stored.run is None:
        raise LockstepError(str(path), found="an exported folder", expected="a run folder")
    config, out = stored.config(), stored.run.voice_folder
    kind = kind_of(config)
    shutil.rmtree(out, ignore_errors=True)
    say = partial(console.print, highlight=False, soft_wrap=True)
    export(stored.checkpoint, ExportRequest(out=out, formats=kind.final_formats(config)), say)
    kind.measure(stored, out, data, console)
