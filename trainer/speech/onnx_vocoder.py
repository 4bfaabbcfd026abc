"""ONNX vocoders that give samples, as ours, HiFi-GAN and BigVGAN do. Every output is checked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.onnx_file import open_session, read_file, refusals, short_message

PROFILE_KEY = "mel_profile"
"""Metadata key of the mel profile's name."""

_FLOATS: dict[str, type[np.floating[Any]]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}
_PCM_16 = "tensor(int16)"
_LARGEST_PEAK = 1000.0
"""Largest peak of samples: mels of a young model are loud; beyond this the scale is that of 16-bit integers."""
_TRIAL_FRAMES = 40


class _MelInput(NamedTuple):
    """The input of a vocoder: float[1, M, T] with channels first, otherwise float[1, T, M]."""

    name: str
    dtype: type[np.floating[Any]]
    channels_first: bool


class OnnxVocoder:
    """An ONNX vocoder: float32[T, M], natural-log magnitude -> float32[S], S within a hop of T * hop."""

    def __init__(self, path: Path, profile: MelProfile, warn: Callable[[str], None]) -> None:
        """Load and try the model; `LockstepError` if it does not fit the profile, or is not a vocoder."""
        self.path, self.profile = path, profile
        self._session = open_session(read_file(path), str(path))
        self._check_metadata(warn)
        self.mel_input = self._find_input()
        self._check_outputs()
        self(np.full((_TRIAL_FRAMES, profile.mel_channels), profile.silence, np.float32))

    def __call__(self, mel: np.ndarray) -> np.ndarray:
        """Turn a mel into samples."""
        name, dtype, channels_first = self.mel_input
        batch = mel.T[None] if channels_first else mel[None]
        try:
            (output,) = self._session.run(None, {name: np.ascontiguousarray(batch, dtype)})
        except refusals() as error:
            mel_shape = f"a log-mel {list(batch.shape)} of profile {self.profile.name}"
            raise LockstepError(str(self.path), found=f"does not run on {mel_shape} ({short_message(error)})") from None
        return self._samples(output, len(mel))

    def _find_input(self) -> _MelInput:
        """Return the input if it is one log-mel; with a symbolic channel axis it counts as [1, M, T]."""
        inputs, channels = self._session.get_inputs(), self.profile.mel_channels
        described = "; ".join(f"{tensor.name} {tensor.shape} {tensor.type}" for tensor in inputs)
        expected = f"one log-mel [1, {channels}, T] or [1, T, {channels}] of profile {self.profile.name}"
        fits = len(inputs) == 1 and len(inputs[0].shape) == 3 and inputs[0].type in _FLOATS
        if fits:
            batch, *axes = (size if isinstance(size, int) else None for size in inputs[0].shape)
            fits = batch in (None, 1) and axes in ([None, None], [channels, None], [None, channels])
        if not fits:
            raise LockstepError(str(self.path), found=f"a model with the inputs {described}", expected=expected)
        return _MelInput(inputs[0].name, _FLOATS[inputs[0].type], axes != [None, channels])

    def _check_outputs(self) -> None:
        outputs = self._session.get_outputs()
        if len(outputs) != 1 or outputs[0].type not in {*_FLOATS, _PCM_16}:
            described = "; ".join(f"{tensor.name} {tensor.shape} {tensor.type}" for tensor in outputs)
            found = f"a model with the outputs {described}"
            raise LockstepError(str(self.path), found=found, expected="samples, float or int16")

    def _samples(self, raw: np.ndarray, frames: int) -> np.ndarray:
        """Check an output and convert it to samples float32[S]; peaks may pass 1; `LockstepError` for others."""
        hop = self.profile.hop_samples
        if max(raw.shape, default=1) != raw.size or abs(raw.size - frames * hop) > hop:
            raise LockstepError(
                str(self.path), found=f"an output of shape {list(raw.shape)} for {frames} frames",
                expected=f"{frames * hop} samples, give or take a hop of {hop}",
            )
        samples = raw.reshape(-1).astype(np.float32)
        if raw.dtype == np.int16:
            return samples / 2**15
        bad = int(np.count_nonzero(~np.isfinite(samples)))
        peak = float(np.abs(samples).max(initial=0.0))
        if bad or peak > _LARGEST_PEAK:
            found = f"{bad} of {samples.size} samples not finite" if bad else f"samples up to {peak:.4g}"
            raise LockstepError(str(self.path), found=found, expected="samples in -1 to 1, or int16")
        return samples

    def _check_metadata(self, warn: Callable[[str], None]) -> None:
        """Raise `LockstepError` if the metadata is of a vocoder for other mels; warn if it names no profile."""
        metadata: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        declared, profile = metadata.get(PROFILE_KEY), self.profile
        if declared not in (None, profile.name):
            raise LockstepError(
                str(self.path), found=f"a vocoder for mel profile {declared}",
                expected=f"{profile.name}, the checkpoint's",
                fix=f"choose another vocoder, or train on features of audio.profile: {declared}",
            )
        wanted = {
            "sample_rate": profile.sample_rate, "hop_length": profile.hop_samples,
            "n_mels": profile.mel_channels, "num_mels": profile.mel_channels, "feat_dim": profile.mel_channels,
        }
        for key, value in wanted.items():
            if (own := metadata.get(key, str(value))) != str(value):
                raise LockstepError(
                    str(self.path), found=f"a vocoder with {key} {own[:80]}",
                    expected=f"{value}, as in mel profile {profile.name}, the checkpoint's",
                    fix="choose another vocoder",
                )
        if declared is None:
            warn(f"{self.path} has no {PROFILE_KEY} metadata; assuming {profile.name}")
