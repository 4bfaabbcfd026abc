"""Choice of the vocoder: the voice's own, that of the package for its mel profile, Griffin-Lim, or an ONNX file."""

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


def default_vocoder(profile: MelProfile, voice: Path | None = None) -> Path | None:
    """Return the ONNX file in the folder `voice`, else that of the package for the profile; None if there is none."""
    packaged = Path(__file__).with_name(f"{profile.name}.onnx")
    own = [voice / VOCODER_FILE] if voice else []
    return next((file for file in (*own, packaged) if file.is_file()), None)


def make_vocoder(
    name: str | None, profile: MelProfile, warn: Callable[[str], None], *, voice: Path | None = None
) -> Vocoder:
    """Load the vocoder named by `--vocoder`.

    Args:
        name: None for `default_vocoder`, or Griffin-Lim if there is none.
        profile: Mel profile of the voice.
        warn: Gets a line about a vocoder that may not fit.
        voice: Folder of the voice.

    Raises:
        LockstepError: There is no such vocoder, or its model does not fit the profile.
    """
    check_vocoder(name)
    file = default_vocoder(profile, voice) if name is None else None
    if name not in (None, GRIFFIN_LIM):
        file = Path(name.removeprefix(_ONNX))
    if file is not None:
        from xtts.trainer.vocoders.onnx_vocoder import OnnxVocoder

        return OnnxVocoder(file, profile, warn)
    from xtts.shared.audio.griffin_lim import reconstruct

    return lambda mel: reconstruct(mel, profile)
