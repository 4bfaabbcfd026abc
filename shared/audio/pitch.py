"""Pitch by autocorrelation, and how rough a voice is. Needs numpy alone.

Letters: S samples, T mel frames, C candidates of a frame, W samples of a window.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from xtts.shared.audio.mel_profiles import MelProfile

LOWEST_HZ, HIGHEST_HZ = 60.0, 500.0
"""Range of speaking voices."""
_PERIODS = 3
"""Periods of the lowest pitch in a window, as Boersma has it for a Hann window."""
_SILENCE, _VOICING, _OCTAVE, _OCTAVE_JUMP, _VOICE_CHANGE = 0.03, 0.45, 0.01, 0.35, 0.14
"""Silence threshold, voicing threshold, octave cost, octave-jump cost and voiced/unvoiced cost, as Praat has them."""
_CANDIDATES = 8
_LARGEST_RATIO = 1.6
"""Largest ratio of the levels of two neighbouring periods, as in Praat: beyond it speech begins or ends."""


def track_pitch(samples: np.ndarray, profile: MelProfile, frames: int) -> np.ndarray:
    """F0 in Hz of samples float32[S] in each of T mel frames, 0 where unvoiced: float32[T]; NaN counts as silence.

    Boersma, "Accurate short-term analysis of the fundamental frequency and the harmonics-to-noise ratio of a sampled
    sound" (IFA Proceedings 17, 1993): the autocorrelation of a Hann window's samples, divided by that of the window;
    its maxima are candidates, and the cheapest path leads through one of each frame.
    """
    rate, samples = profile.sample_rate, np.nan_to_num(samples).astype(np.float64)
    size = round(_PERIODS * rate / LOWEST_HZ)
    windows = _windows(samples, profile, frames, size)
    windows = windows - windows.mean(axis=1, keepdims=True)
    correlation = _autocorrelation(windows)
    loudness = np.abs(windows).max(axis=1) / max(np.abs(samples - samples.mean()).max(initial=0.0), 1e-9)
    lags, strengths = _candidates(correlation, rate)
    unvoiced = _VOICING + np.maximum(0.0, 2.0 - loudness * (1.0 + _VOICING) / _SILENCE)
    path = _cheapest_path(rate / lags, strengths, unvoiced, seconds=profile.hop_samples / rate)
    voiced = path < lags.shape[1]
    lag = lags[np.arange(frames), np.where(voiced, path, 0)]
    return np.where(voiced, rate / lag, 0.0).astype(np.float32)


def final_pitch(track: np.ndarray, frame_seconds: float) -> float | None:
    """Semitones from the median pitch of the middle of a clip to that of its last tenth of a second of voicing.

    track: float32[T], Hz, 0 where unvoiced. The middle is the second and third quarter of the voiced frames. None for a
    clip with less than half a second of voicing. Statements fall in most languages, questions without a question word
    rise.
    """
    voiced, last = track[track > 0], max(round(0.1 / frame_seconds), 1)
    if len(voiced) < 5 * last:
        return None
    quarter = len(voiced) // 4
    return float(12.0 * np.log2(np.median(voiced[-last:]) / np.median(voiced[quarter:-quarter])))


def shimmer(samples: np.ndarray, hertz: np.ndarray, profile: MelProfile) -> float | None:
    """Mean difference between the levels of neighbouring periods over their mean level; None without two voiced ones.

    "Local" shimmer as Praat defines it, of the root mean square of each period instead of its highest peak, which the
    phases of a vocoder move. samples: float32[S], hertz: float32[T], of `track_pitch`.
    """
    hop, place, before = profile.hop_samples, 0.0, 0.0
    differences, levels = list[float](), list[float]()
    while place < min(len(hertz) * hop, len(samples)):
        if (pitch := float(hertz[int(place // hop)])) == 0.0:
            place, before = place + hop, 0.0
            continue
        period = profile.sample_rate / pitch
        level = float(np.sqrt(np.mean(np.square(samples[int(place) : int(place + period)], dtype=np.float64))))
        if 0.0 < max(level, before) < _LARGEST_RATIO * min(level, before):
            differences.append(abs(level - before))
            levels.append(0.5 * (level + before))
        place, before = place + period, level
    return sum(differences) / sum(levels) if levels else None


def _windows(samples: np.ndarray, profile: MelProfile, frames: int, size: int) -> np.ndarray:
    """float64[T, W]: the samples around the middle of each mel frame."""
    hop = profile.hop_samples
    before = size // 2 - (0 if profile.centered else hop // 2)
    after = max(0, (frames - 1) * hop + size - before - len(samples))
    return sliding_window_view(np.pad(samples, (before, after)), size)[::hop][:frames]


def _autocorrelation(windows: np.ndarray) -> np.ndarray:
    """float64[T, W] -> [T, W / 2], normalised: of a Hann window's samples, divided by that of the window itself."""
    size = windows.shape[1]
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * (np.arange(size) + 0.5) / size)
    length = 2 ** math.ceil(math.log2(1.5 * size))
    products = [
        np.fft.irfft(np.abs(np.fft.rfft(signal * hann, length)) ** 2, length)[..., : size // 2]
        for signal in (windows, np.ones(size))
    ]
    own, window = (product / np.maximum(product[..., :1], 1e-12) for product in products)
    return own / window


def _candidates(correlation: np.ndarray, rate: int) -> tuple[np.ndarray, np.ndarray]:
    """(lags in samples, strengths) of the highest maxima of each frame: float64[T, C] each, strength -inf for none."""
    first, last = math.floor(rate / HIGHEST_HZ), math.ceil(rate / LOWEST_HZ)
    left, here, right = (correlation[:, first + shift : last + 1 + shift] for shift in (-1, 0, 1))
    peaks = (here > left) & (here >= right) & (here > 0.5 * _VOICING)
    # A parabola through three values has its top between them.
    curve = np.where(peaks, 2.0 * here - left - right, 1.0)
    offset = np.where(peaks, 0.5 * (right - left) / curve, 0.0)
    lags = np.arange(first, last + 1) + offset
    height = np.minimum(here + 0.25 * (right - left) * offset, 1.0)
    strengths = np.where(peaks, height - _OCTAVE * np.log2(LOWEST_HZ * lags / rate), -np.inf)
    best = np.argsort(-strengths, axis=1, kind="stable")[:, :_CANDIDATES]
    return np.take_along_axis(lags, best, 1), np.take_along_axis(strengths, best, 1)


def _cheapest_path(hertz: np.ndarray, strengths: np.ndarray, unvoiced: np.ndarray, *, seconds: float) -> np.ndarray:
    """The candidate of each frame, int[T]; C is unvoiced. hertz, strengths: [T, C], unvoiced: [T], seconds: a frame."""
    octaves = np.log2(hertz)
    scores = np.concatenate([strengths, unvoiced[:, None]], axis=1)
    scale = 0.01 / seconds
    total, before = scores[:1].copy(), list[np.ndarray]()
    change = np.full((scores.shape[1],) * 2, _VOICE_CHANGE * scale)
    change[-1, -1] = 0.0
    for now, past, score in zip(octaves[1:], octaves[:-1], scores[1:], strict=True):
        change[:-1, :-1] = _OCTAVE_JUMP * scale * np.abs(past[:, None] - now[None])
        reached = total[-1][:, None] - change
        before.append(reached.argmax(axis=0))
        total = np.vstack([total[-1:], (reached.max(axis=0) + score)[None]])
    path = [int(total[-1].argmax())]
    for back in reversed(before):
        path.append(int(back[path[-1]]))
    return np.array(path[::-1])
