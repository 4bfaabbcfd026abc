"""From log-mel to waveform: Griffin-Lim, or an ONNX vocoder for this profile's log-mel."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError

Vocoder = Callable[[np.ndarray], np.ndarray]
"""mel float32[T, M], natural-log magnitude -> samples float32[S] in -1 to 1."""

GRIFFIN_LIM, _ONNX = "griffinlim", "onnx:"


def check_vocoder(name: str) -> None:
    """Raise `LockstepError` for an invalid vocoder, before heavy imports."""
    if name == GRIFFIN_LIM:
        return
    if not name.startswith(_ONNX):
        raise LockstepError("--vocoder", found=repr(name), expected=f"{GRIFFIN_LIM} or {_ONNX}FILE")
    if not Path(name.removeprefix(_ONNX)).is_file():
        raise LockstepError("--vocoder", found=f"no such file: {name.removeprefix(_ONNX)}")


def make_vocoder(name: str, profile: MelProfile, warn: Callable[[str], None]) -> Vocoder:
    """The vocoder named by `--vocoder`, ready for use; `LockstepError` for a model that does not fit the profile."""
    check_vocoder(name)
    if name != GRIFFIN_LIM:
        from xtts.trainer.synth.vocoder.onnx_vocoder import OnnxVocoder

        return OnnxVocoder(Path(name.removeprefix(_ONNX)), profile, warn)
    from xtts.shared.audio.griffin_lim import reconstruct

    return lambda mel: reconstruct(mel, profile)
