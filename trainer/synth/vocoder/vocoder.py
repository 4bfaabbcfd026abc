"""Choice of the vocoder: that of an exported voice, Griffin-Lim, or another ONNX model for its log-mels."""

from collections.abc import Callable
from importlib import util
from pathlib import Path

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError

Vocoder = Callable[[np.ndarray], np.ndarray]
"""mel float32[T, M], natural-log magnitude -> samples float32[S] in -1 to 1."""

GRIFFIN_LIM, _ONNX = "griffinlim", "onnx:"
VOCODER_FILE = "vocoder.onnx"
"""The vocoder of an exported voice, in its folder."""


def check_vocoder(name: str | None) -> None:
    """Raise `LockstepError` for an invalid name, before heavy imports; None is the voice's own vocoder."""
    if name in (None, GRIFFIN_LIM):
        return
    if not name.startswith(_ONNX):
        raise LockstepError("--vocoder", found=repr(name), expected=f"{GRIFFIN_LIM} or {_ONNX}FILE")
    if not Path(name.removeprefix(_ONNX)).is_file():
        raise LockstepError("--vocoder", found=f"no such file: {name.removeprefix(_ONNX)}")


def make_vocoder(
    name: str | None, profile: MelProfile, warn: Callable[[str], None], *, voice: Path | None = None
) -> Vocoder:
    """Load the vocoder named by `--vocoder`.

    Args:
        name: None for the one in the folder `voice`, or Griffin-Lim if it has none.
        profile: Mel profile of the voice.
        warn: Gets a line about a vocoder that may not fit, or cannot be used.
        voice: Folder of the voice.

    Raises:
        LockstepError: There is no such vocoder, or its model does not fit the profile.
    """
    check_vocoder(name)
    if name is None and voice is not None and (own := voice / VOCODER_FILE).is_file():
        if util.find_spec("onnxruntime"):
            name = f"{_ONNX}{own}"
        else:
            warn(f"{own} needs onnxruntime (pip install 'lockstep-tts[onnx]'): Griffin-Lim makes the sound")
    if name not in (None, GRIFFIN_LIM):
        from xtts.trainer.synth.vocoder.onnx_vocoder import OnnxVocoder

        return OnnxVocoder(Path(str(name).removeprefix(_ONNX)), profile, warn)
    from xtts.shared.audio.griffin_lim import reconstruct

    return lambda mel: reconstruct(mel, profile)
