"""Choice of the vocoder: the voice's own, ours, Griffin-Lim, or an ONNX file."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError

MelToSamples = Callable[[np.ndarray], np.ndarray]
"""mel float32[T, M], natural-log magnitude -> samples float32[S]."""

GRIFFIN_LIM, _ONNX = "griffinlim", "onnx:"
VOCODER_FILE = "vocoder.onnx"
"""The vocoder of an exported voice, in its folder."""
OUR_VOICE = Path(str(files("xtts.voices"))) / "base"
"""Our own voice, which comes with the package."""
OUR_VOCODER = OUR_VOICE / VOCODER_FILE
OUR_WEIGHTS = OUR_VOICE.with_name("vocoder")
"""The folder of its weights; the package has only its list of sources."""
_OUR_PROFILE = "hifigan"


def check_vocoder(name: str | None) -> None:
    """Raise `LockstepError` for an invalid name, before heavy imports; None is the default."""
    if name in (None, GRIFFIN_LIM):
        return
    if not name.startswith(_ONNX):
        raise LockstepError("--vocoder", found=repr(name), expected=f"{GRIFFIN_LIM} or {_ONNX}FILE")
    if not Path(name.removeprefix(_ONNX)).is_file():
        raise LockstepError("--vocoder", found=f"no such file: {name.removeprefix(_ONNX)}")


def find_vocoder(profile: MelProfile, voice: Path | None = None) -> Path | None:
    """Return the vocoder in the folder of a voice, or ours if it has none; None if ours is for another mel profile."""
    if voice is not None and (own := voice / VOCODER_FILE).is_file():
        return own
    return OUR_VOCODER if profile.name == _OUR_PROFILE else None


def make_vocoder(
    name: str | None, profile: MelProfile, warn: Callable[[str], None], *, voice: Path | None = None, clip: bool = True
) -> MelToSamples:
    """Load the vocoder named by `--vocoder`; None is that of `find_vocoder`, or Griffin-Lim if there is none.

    warn: receives a line about a vocoder that may not fit; clip: limit samples to -1 to 1, which loud mels exceed.

    Raises:
        LockstepError: There is no such vocoder, or its model does not fit the profile.
    """
    check_vocoder(name)
    file = find_vocoder(profile, voice) if name is None else Path(name.removeprefix(_ONNX))
    if file is not None and name != GRIFFIN_LIM:
        from xtts.trainer.speech.onnx_vocoder import OnnxVocoder

        vocoder = OnnxVocoder(file, profile, warn)
        return (lambda mel: np.clip(vocoder(mel), -1.0, 1.0)) if clip else vocoder
    from xtts.shared.audio.griffin_lim import reconstruct

    return lambda mel: reconstruct(mel, profile)
