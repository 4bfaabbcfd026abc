"""Samples to natural-log mel, in blocks of frames."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from xtts.shared.audio.mel_profiles import EDGE_FRAMES, MelProfile

FEATURE_VERSION = 4
"""Incremented when the output of this module or of shared/audio/decode.py changes: old mels are then recomputed."""

_BLOCK_FRAMES = 128  # the windowed frames and their spectrum fit the second-level cache

_BANKS = 5

MEL_TOLERANCE = 1e-3
"""Largest difference between the log-mels of two FFT libraries in float64, on any clip and profile."""

_WIDE_RANGE = {"slaney": 10.5, "htk": 8.5}
"""Nats between the loudest and quietest channel of a frame above which float32 is too coarse, by mel scale.

A float32 FFT rounds by 1e-7 of the loudest bin: on LJSpeech the log-mel of 0.1% of the frames would be off by up to
1.3e-3. Such frames are recomputed in float64. HTK's filters are not normed: a quiet channel of a single bin is off
by 2.5e-3 at 10.5, by 4.5e-4 at 8.5.
"""


def clip_mel(samples: np.ndarray, profile: MelProfile) -> np.ndarray:
    """Compute the log-mel of a clip as caches store it, with `EDGE_FRAMES` of silence at either end.

    samples: float32[S] -> float32[T, M], T = `profile.clip_frames(S)`.
    """
    return np.pad(log_mel(samples, profile), [(EDGE_FRAMES, EDGE_FRAMES), (0, 0)], constant_values=profile.silence)


def log_mel(samples: np.ndarray, profile: MelProfile) -> np.ndarray:
    """Compute the log-mel of samples.

    samples: float32[S] at the profile's rate, S > `padding_samples`. Returns float32[T, M], natural-log magnitude.
    """
    pad, hop = profile.padding_samples, profile.hop_samples
    padded = np.concatenate([samples[pad:0:-1], samples, samples[-2 : -pad - 2 : -1]])
    frames = sliding_window_view(padded, profile.fft_size)[::hop][: profile.frames(len(samples))]
    out = np.empty((len(frames), profile.mel_channels), np.float32)
    for start in range(0, len(frames), _BLOCK_FRAMES):
        out[start : start + _BLOCK_FRAMES] = _log_mel_frames(frames[start : start + _BLOCK_FRAMES], profile)
    channels = np.ascontiguousarray(out.T)  # extremes over rows would take five times as long
    wide = np.flatnonzero(channels.max(axis=0) - channels.min(axis=0) > _WIDE_RANGE[profile.mel_scale])
    for start in range(0, len(wide), _BLOCK_FRAMES):
        block = wide[start : start + _BLOCK_FRAMES]
        out[block] = _log_mel_frames(frames[block].astype(np.float64), profile)
    return out


def _log_mel_frames(frames: np.ndarray, profile: MelProfile) -> np.ndarray:
    """Compute [T, M] from frames [T, n_fft], in their precision."""
    import scipy.fft  # takes 0.1 s, which only the workers need

    magnitude = np.abs(scipy.fft.rfft(frames * hann_window(profile, frames.dtype), axis=1))
    if profile.magnitude_floor:
        np.square(magnitude, out=magnitude)
        magnitude += profile.magnitude_floor
        np.sqrt(magnitude, out=magnitude)
    mel = np.empty((len(frames), profile.mel_channels), frames.dtype)
    for channels, bins, bank in _banks(profile, frames.dtype):
        mel[:, channels] = magnitude[:, bins] @ bank
    np.maximum(mel, profile.log_floor, out=mel)
    return np.log(mel, out=mel)


@lru_cache
def hann_window(profile: MelProfile, dtype: np.dtype) -> np.ndarray:
    """Return the periodic Hann window, centred in the FFT frame: [n_fft]."""
    n = np.arange(profile.window_samples)
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * n / profile.window_samples)
    left = (profile.fft_size - profile.window_samples) // 2
    return np.pad(hann, (left, profile.fft_size - profile.window_samples - left)).astype(dtype)


@lru_cache
def _banks(profile: MelProfile, dtype: np.dtype) -> list[tuple[slice, slice, np.ndarray]]:
    """Split the filterbank into `_BANKS`: (channels, the FFT bins they reach, weights [bins, channels]) of each.

    Most weights of the full filterbank are 0: the product takes 0.5 us per frame, those of the banks 0.2.
    """
    filters, banks = mel_filterbank(profile), []
    edges = np.linspace(0, profile.mel_channels, _BANKS + 1).astype(int).tolist()
    for low, high in pairwise(edges):
        reached = np.flatnonzero(filters[low:high].any(axis=0))
        bins = slice(int(reached.min()), int(reached.max()) + 1)
        banks.append((slice(low, high), bins, np.ascontiguousarray(filters[low:high, bins].T, dtype)))
    return banks


def mel_filterbank(profile: MelProfile) -> np.ndarray:
    """Return triangular filters float64[M, n_fft/2 + 1], equal to those of librosa.filters.mel.

    Importing librosa would cost every worker a second, and numba.
    """
    edges = _mel_edges(profile)
    bins = np.arange(profile.fft_size // 2 + 1) * (profile.sample_rate / profile.fft_size)
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    filters: np.ndarray = np.maximum(0.0, np.minimum(rising, falling))
    if profile.mel_scale == "slaney":
        filters *= 2.0 / (edges[2:] - edges[:-2])[:, None]
    return filters


def channel_hertz(profile: MelProfile) -> tuple[float, ...]:
    """Return the centres of the M mel channels in Hz."""
    return tuple(_mel_edges(profile)[1:-1].tolist())


def _mel_edges(profile: MelProfile) -> np.ndarray:
    """Return M + 2 frequencies in Hz, evenly spaced in mel."""
    to_mel, to_hz = (_slaney_mel, _slaney_hz) if profile.mel_scale == "slaney" else (_htk_mel, _htk_hz)
    low, high = to_mel(np.array([profile.low_hz, profile.high_hz]))
    return to_hz(np.linspace(low, high, profile.mel_channels + 2))


def _htk_mel(hz: np.ndarray) -> np.ndarray:
    return 2595.0 * np.log10(1.0 + hz / 700.0)


def _htk_hz(mel: np.ndarray) -> np.ndarray:
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


# Slaney's Auditory Toolbox: linear below 1 kHz (200/3 Hz a mel), then 27 logarithmic steps to 6.4 kHz.
_LINEAR_HZ, _LOG_STEP, _KNEE_HZ = 200.0 / 3.0, np.log(6.4) / 27.0, 1000.0
_KNEE_MEL = _KNEE_HZ / _LINEAR_HZ


def _slaney_mel(hz: np.ndarray) -> np.ndarray:
    above = _KNEE_MEL + np.log(np.maximum(hz, _KNEE_HZ) / _KNEE_HZ) / _LOG_STEP
    return np.where(hz < _KNEE_HZ, hz / _LINEAR_HZ, above)


def _slaney_hz(mel: np.ndarray) -> np.ndarray:
    above = _KNEE_HZ * np.exp(_LOG_STEP * (np.maximum(mel, _KNEE_MEL) - _KNEE_MEL))
    return np.where(mel < _KNEE_MEL, mel * _LINEAR_HZ, above)
