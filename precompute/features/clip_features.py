"""Compute the mel of a clip, its sums, its quality; and the audio of a crop."""

import numpy as np

from xtts.precompute.corpus.clip_audio import check_unchanged, read_audio
from xtts.precompute.corpus.record_recipe import RecordRecipe, resampling_rate
from xtts.shared.audio.decode import AudioProblem, Recording
from xtts.shared.audio.mel import clip_mel, log_mel
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.audio.pitch import track_pitch
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.clip_index import IndexRow
from xtts.shared.cache.records import CropAudio

_UNVOICED_LOG_HERTZ = 5.0
"""The pitch of a crop without a voiced frame: 148 Hz."""


def read_mel(row: IndexRow, recipe: RecordRecipe) -> tuple[np.ndarray, np.ndarray, Recording]:
    """Return (mel in the stored type, samples float32[S], recording) of a clip; raises `AudioProblem`."""
    audio = _read_source(row, recipe)
    samples = recipe.samples(audio, resampling_rate(row.clip, recipe.config))
    return extract_mel(samples, row.mel_length, recipe), samples, audio


def measure(row: IndexRow, recipe: RecordRecipe) -> SignalQuality | None:
    """Decode a clip and measure its quality; None if it cannot be decoded."""
    try:
        return _read_source(row, recipe).quality
    except AudioProblem:  # writing its shard rejects it
        return None


def mel_sums(mel: np.ndarray) -> tuple[float, float]:
    """Sum and sum of squares of a stored mel without padding, in float64."""
    exact = mel.astype(np.float64).ravel()
    return float(exact.sum()), float(np.dot(exact, exact))


def extract_mel(samples: np.ndarray, frames: int, recipe: RecordRecipe) -> np.ndarray:
    """The mel of samples, float32[S], in the stored type; raises `AudioProblem` if it does not have `frames` frames."""
    if recipe.frames(len(samples)) != frames:
        raise AudioProblem("unreadable audio", f"{len(samples)} samples decoded, the header says otherwise")
    with np.errstate(all="ignore"):  # the caller checks for samples that are not numbers
        mel = log_mel if recipe.config.audio.crop_frames else clip_mel
        return mel(samples, recipe.profile)[:frames].astype(recipe.config.shards.mel_dtype)


def crop_audio(samples: np.ndarray, frames: int, profile: MelProfile) -> CropAudio:
    """The audio of a crop padded to T frames; samples: float32[S]."""
    padded = np.pad(samples, (0, max(0, frames * profile.hop_samples - len(samples))))[: frames * profile.hop_samples]
    hertz = track_pitch(padded, profile, frames)
    voiced = np.flatnonzero(hertz)
    log_hertz = np.full(frames, _UNVOICED_LOG_HERTZ)
    if len(voiced):
        log_hertz = np.interp(np.arange(frames), voiced, np.log(hertz[voiced]))
    return CropAudio(
        waveform=np.clip(np.round(padded * 32_768.0), -32_768, 32_767).astype(np.int16),
        log_hertz=log_hertz.astype(np.float32), voiced=(hertz > 0.0).astype(np.uint8),
    )


def _read_source(row: IndexRow, recipe: RecordRecipe) -> Recording:
    try:
        return read_audio(recipe.audio(row.clip), row.clip, recipe.config.audio.channel)
    finally:  # also after an error
        check_unchanged(row, recipe)
