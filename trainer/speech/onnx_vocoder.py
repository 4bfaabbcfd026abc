"""Published ONNX vocoders: HiFi-GAN and BigVGAN give samples, Vocos a spectrum. Every output is checked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xtts.shared.audio.inverse_stft import WINDOWS, StftSettings, inverse_stft
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.onnx_file import open_session, read_file, refusals, short_message

PROFILE_KEY = "mel_profile"
"""Metadata key of the mel profile's name."""
SPECTRUM = ("mag", "x", "y")
"""Outputs of Vocos as sherpa-onnx ships it, float32[1, F, T] each: magnitude, cosine and sine of the phase."""

_FLOATS: dict[str, type[np.floating[Any]]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}
_PCM_16 = "tensor(int16)"
_LARGEST_PEAK = 1000.0
"""Largest peak of samples: mels of a young model are loud; beyond this the scale is that of 16-bit integers."""
_TRIAL_FRAMES = 40
_LARGEST_FFT = 2**16


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
        self._metadata: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        self._check_metadata(warn)
        self.mel_input = self._find_input()
        self._outputs = self._find_outputs()
        self._stft = self._stft_settings() if len(self._outputs) == len(SPECTRUM) else None
        self(np.full((_TRIAL_FRAMES, profile.mel_channels), profile.silence, np.float32))

    def __call__(self, mel: np.ndarray) -> np.ndarray:
        """Turn a mel into samples."""
        name, dtype, channels_first = self.mel_input
        batch = mel.T[None] if channels_first else mel[None]
        try:
            outputs = self._session.run(self._outputs, {name: np.ascontiguousarray(batch, dtype)})
        except refusals() as error:
            mel_shape = f"a log-mel {list(batch.shape)} of profile {self.profile.name}"
            raise LockstepError(str(self.path), found=f"does not run on {mel_shape} ({short_message(error)})") from None
        raw = outputs[0] if self._stft is None else self._invert(outputs, self._stft, len(mel))
        return self._samples(raw, len(mel))

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

    def _find_outputs(self) -> list[str]:
        """Return the name of the samples, or the three names of a spectrum."""
        outputs = self._session.get_outputs()
        names, types = [tensor.name for tensor in outputs], {tensor.type for tensor in outputs}
        if set(SPECTRUM) == set(names) and types <= set(_FLOATS):
            return list(SPECTRUM)
        if len(names) == 3 and self._metadata.get("model_type") == "vocos" and types <= set(_FLOATS):
            return names
        if len(names) == 1 and types <= {*_FLOATS, _PCM_16}:
            return names
        described = "; ".join(f"{tensor.name} {tensor.shape} {tensor.type}" for tensor in outputs)
        raise LockstepError(
            str(self.path), found=f"a model with the outputs {described}",
            expected=f"samples, float or int16, or the spectrum {', '.join(SPECTRUM)} of Vocos",
        )

    def _invert(self, outputs: list[np.ndarray], settings: StftSettings, frames: int) -> np.ndarray:
        wanted = (1, settings.bins, frames)
        for name, values in zip(self._outputs, outputs, strict=True):
            if values.shape != wanted:
                raise LockstepError(
                    str(self.path), found=f"the output {name} of shape {list(values.shape)}",
                    expected=f"{list(wanted)} for {frames} frames and n_fft {settings.fft_size}",
                )
        magnitude, cosine, sine = (values[0].astype(np.float32) for values in outputs)
        with np.errstate(all="ignore"):  # `_samples` refuses values that are not finite
            return inverse_stft(magnitude * (cosine + 1j * sine), settings)

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

    def _stft_settings(self) -> StftSettings:
        """Read the settings of Vocos' spectrum from the metadata for sherpa-onnx; missing ones are as in Vocos.

        `pad_mode` is not needed: the inverse cuts off what padding added.
        """
        profile = self.profile
        defaults = {
            "n_fft": profile.fft_size, "hop_length": profile.hop_samples, "win_length": profile.window_samples,
            "center": 1, "normalized": 0,
        }
        settings = {key: self._integer(key, default) for key, default in defaults.items()}
        size, hop, window = settings["n_fft"], settings["hop_length"], settings["win_length"]
        if not 0 < hop <= window <= size <= _LARGEST_FFT or size % 2:
            raise LockstepError(
                str(self.path), found=f"n_fft {size}, win_length {window} and hop_length {hop} in its metadata",
                expected=f"hop_length <= win_length <= n_fft <= {_LARGEST_FFT}, n_fft even",
            )
        shape = self._metadata.get("window_type", WINDOWS[0])
        if shape not in WINDOWS:
            raise LockstepError(str(self.path), found=f"window_type {shape!r}", expected=" or ".join(WINDOWS))
        return StftSettings(
            fft_size=size, hop_samples=hop, window_samples=window, centered=bool(settings["center"]), window=shape,
            normalized=bool(settings["normalized"]),
        )

    def _check_metadata(self, warn: Callable[[str], None]) -> None:
        """Raise `LockstepError` if the metadata is of a vocoder for other mels; warn if it names no profile."""
        declared, profile = self._metadata.get(PROFILE_KEY), self.profile
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
            own = self._integer(key, value)
            if own != value:
                raise LockstepError(
                    str(self.path), found=f"a vocoder with {key} {own}",
                    expected=f"{value}, as in mel profile {profile.name}, the checkpoint's",
                    fix="choose another vocoder",
                )
        if declared is None:
            warn(f"{self.path} has no {PROFILE_KEY} metadata; assuming {profile.name}")

    def _integer(self, key: str, default: int) -> int:
        text = self._metadata.get(key, str(default))
        try:
            return int(text)
        except ValueError:
            raise LockstepError(
                str(self.path), found=f"{key} {text[:80]!r} in its metadata", expected="a number"
            ) from None
