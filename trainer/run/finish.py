"""Export of a model: RUN/voice/ at the end of a run, and every other one."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from xtts.shared.errors import LockstepError
from xtts.trainer.export.export_formats import PIPER, ExportRequest
from xtts.trainer.export.products import product_of
from xtts.trainer.speech.output_files import new_folder
from xtts.trainer.stored.stored_model import StoredModel, open_model


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
        _write(open_model(checkpoint), folder, request, say)


def _write(stored: StoredModel, folder: Path, request: ExportRequest, say: Callable[[str], object]) -> None:
    say(f"exporting {stored.checkpoint}: may take a minute")
    for each in product_of(stored.config()).export(stored, folder, request):
        say(f"{request.out}: {stored.checkpoint} as {each}")


def finish_run(path: Path, console: Console, data: Path | None = None) -> None:
    """Export the newest checkpoint of a run, measure it, and put the folder in the place of RUN/voice/.

    An interruption leaves the earlier voice. data: folder of the corpus, if known, for the recordings of the listening
    page.

    Raises:
        LockstepError: The folder is not a run, or cannot be written.
    """
    stored = open_model(path)
    if stored.run is None:
        raise LockstepError(str(path), found="an exported folder", expected="a run folder")
    out, product = stored.run.voice_folder, product_of(stored.config())
    for left in out.parent.glob(f".{out.name}.*.*"):  # by a finish that was killed
        if left.suffix == ".replaced" and not out.exists():
            left.rename(out)
        shutil.rmtree(left, ignore_errors=True)
    with new_folder(out, replace=True) as folder:
        say = partial(console.print, highlight=False, soft_wrap=True)
        _write(stored, folder, ExportRequest(out=out, formats=product.final_formats), say)
        product.measure(stored, folder, data, console)
