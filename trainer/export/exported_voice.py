"""The voice that speaks for a model: an exported folder itself, or the export of a checkpoint."""

from collections.abc import Callable
from pathlib import Path

from xtts.trainer.speech.output_files import new_folder
from xtts.trainer.speech.voice_source import GRAPH_FILE, Source, is_voice_folder, open_source


def exported_voice(checkpoint: Path, tell: Callable[[str], None]) -> Source:
    """Open the voice of an exported folder, or of a run folder or checkpoint, which is exported first if need be.

    RUN/voice/ has the voice of the checkpoint that it was made from, RUN/checkpoint-voice/ that of the last other one
    that spoke. tell: receives a line before an export.

    Raises:
        LockstepError: It is no voice, or cannot be exported.
    """
    if is_voice_folder(checkpoint):
        return open_source(checkpoint)
    from xtts.trainer.export.export_formats import ONNX, ExportRequest
    from xtts.trainer.export.exported_files import export_voice
    from xtts.trainer.stored.checkpoint import ACOUSTIC
    from xtts.trainer.stored.stored_model import open_model

    stored = open_model(checkpoint)
    stored.check_kind(ACOUSTIC, fix="give --ckpt a voice; xtts-synth export writes a vocoder as a file for --vocoder")
    assert stored.run is not None
    folders = stored.run.voice_folder, stored.run.checkpoint_voice
    folder = next((each for each in folders if (each / GRAPH_FILE).is_file() and stored.is_exported(each)), None)
    if folder is None:
        folder = stored.run.checkpoint_voice
        tell(f"exporting {stored.checkpoint} to {folder}: may take a minute")
        with new_folder(folder, replace=True) as partial:
            export_voice(stored, partial, ExportRequest(out=folder, formats=[ONNX]))
    return open_source(folder)
