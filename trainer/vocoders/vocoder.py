"""Choice of the vocoder: the voice's own, Griffin-Lim, or an ONNX file."""

from collections.abc import Callable
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
    """Raise `LockstepError` for an invalid name, before heavy imports; None is the default."""
    if name in (None, GRIFFIN_LIM):
        return
    if not name.startswith(_ONNX):
        raise LockstepError("--vocoder", found=repr(name), expected=f"{GRIFFIN_LIM} or {_ONNX}FILE")
    if not Path(name.removeprefix(_ONNX)).is_file():
        raise LockstepError("--vocoder", found=f"no such file: {name.removeprefix(_ONNX)}")


def own_vocoder(voice: Path) -> Path | None:
    """Return the vocoder in the folder of a voice; None if it has none."""
    file = voice / VOCODER_FILE
    return file if file.is_file() else None


def make_vocoder(
    name: str | None, profile: MelProfile, warn: Callable[[str], None], *, voice: Path | None = None
) -> Vocoder:
    """Load the vocoder named by `--vocoder`; None is the one in the folder `voice`, or Griffin-Lim if it has none.

    warn: gets a line about a vocoder that may not fit.

    Raises:
        LockstepError: There is no such vocoder, or its model does not fit the profile.
    """
    check_vocoder(name)
    file = own_vocoder(voice) if name is None and voice is not None else None
    if name not in (None, GRIFFIN_LIM):
        file = Path(name.removeprefix(_ONNX))
    if file is not None:
        from xtts.trainer.vocoders.onnx_vocoder import OnnxVocoder

        return OnnxVocoder(file, profile, warn)
    from xtts.shared.audio.griffin_lim import reconstruct

    return lambda mel: reconstruct(mel, profile)
