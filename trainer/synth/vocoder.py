"""From log-mel to waveform: Griffin-Lim, or any ONNX vocoder for this profile's log-mel."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError

Vocoder = Callable[[np.ndarray], np.ndarray]
"""mel float32[T, M], natural-log magnitude -> samples float32[S] in -1 to 1."""

GRIFFIN_LIM, _ONNX = "griffinlim", "onnx:"
PROFILE_KEY = "mel_profile"
"""Metadata of an ONNX vocoder that names its mel profile."""


def check_vocoder(name: str) -> None:
    """Raise `LockstepError` for an invalid vocoder, before heavy imports."""
    if name == GRIFFIN_LIM:
        return
    if not name.startswith(_ONNX):
        raise LockstepError("--vocoder", found=repr(name), expected=f"{GRIFFIN_LIM} or {_ONNX}FILE")
    if not Path(name.removeprefix(_ONNX)).is_file():
        raise LockstepError("--vocoder", found=f"no such file: {name.removeprefix(_ONNX)}")


def make_vocoder(name: str, profile: MelProfile, warn: Callable[[str], None]) -> Vocoder:
    """The vocoder named by `--vocoder`, ready for use."""
    check_vocoder(name)
    if name != GRIFFIN_LIM:
        return _onnx_vocoder(Path(name.removeprefix(_ONNX)), profile, warn)
    from xtts.shared.audio.griffin_lim import reconstruct

    # The first use imports librosa and compiles parts of it.
    reconstruct(np.full((profile.shortest_frames, profile.mel_channels), profile.silence, np.float32), profile)
    return lambda mel: reconstruct(mel, profile)


def _onnx_vocoder(path: Path, profile: MelProfile, warn: Callable[[str], None]) -> Vocoder:
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise LockstepError(
            f"--vocoder {_ONNX}{path}", found="onnxruntime is not installed", fix="pip install 'lockstep-tts[onnx]'"
        ) from None
    refusals = _refusals()
    try:
        session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    except refusals as error:
        raise LockstepError(str(path), found=f"not a usable ONNX model ({str(error).splitlines()[0]})") from None
    declared = session.get_modelmeta().custom_metadata_map.get(PROFILE_KEY)
    if declared is None:
        warn(f"{path} declares no {PROFILE_KEY}; it is given log-mels of profile {profile.name}")
    elif declared != profile.name:
        raise LockstepError(
            str(path), found=f"a vocoder for mel profile {declared}", expected=f"{profile.name}, the checkpoint's",
            fix=f"choose another vocoder, or train on features of audio.profile: {declared}",
        )  # fmt: skip
    return lambda mel: _vocode(session, path, mel)


def _refusals() -> tuple[type[Exception], ...]:
    """Exceptions of onnxruntime for a model that it cannot load or run; most have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # pyright: ignore[reportMissingImports]

    own = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (OSError, RuntimeError, ValueError, *own)


def _vocode(session: Any, path: Path, mel: np.ndarray) -> np.ndarray:  # noqa: ANN401 - onnxruntime ships no types
    """Run a model on float32[1, M, T], or [1, T, M] if its input is declared so: float32[S]."""
    wanted = session.get_inputs()
    channels = mel.shape[1]
    if len(wanted) != 1 or len(wanted[0].shape) != 3 or channels not in wanted[0].shape[1:]:
        found = "; ".join(f"{part.name} {part.shape}" for part in wanted)
        raise LockstepError(
            str(path),
            found=f"a model with the inputs {found}",
            expected=f"one log-mel [1, {channels}, T] or [1, T, {channels}]",
        )
    batch = mel.T[None] if wanted[0].shape[1] == channels else mel[None]
    refusals = _refusals()
    try:
        samples = session.run(None, {wanted[0].name: np.ascontiguousarray(batch, np.float32)})[0]
    except refusals as error:
        raise LockstepError(str(path), found=f"does not run ({str(error).splitlines()[0]})") from None
    return np.clip(np.asarray(samples, np.float32).reshape(-1), -1.0, 1.0)
