"""Figures of sounds against the recordings of their sentences, also above 8 kHz, where `Judge` is deaf."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_BANDS_HZ = ((50, 4_000), (4_000, 8_000), (8_100, 11_000))
"""The first band, without rumble, sets the level. The last begins where frames no longer smear what is below 8 kHz, and
ends below half the rate of every mel profile."""
_INAUDIBLE_DB = -50.0
"""Level of a band, relative to the first, up to which it counts as empty: beside speech of 65 dB, the 15 dB of the
threshold of hearing near 10 kHz. Recordings that were once at 16 kHz have less, whatever the rate of their files."""
_FRAME_SECONDS = 0.04
_SPEECH_GATE = 1e-3
"""A frame with at least this share of the loudest one's power is speech: at most 30 dB below it."""


@dataclass(frozen=True, kw_only=True)
class Brightness:
    """Levels of bands in dB relative to recordings of the same level below 4 kHz: means over the sentences.

    None without a recording whose file has the band.
    """

    level_4_to_8_khz: float | None
    level_8_to_11_khz: float | None


def brightness(
    sounds: Sequence[np.ndarray], recordings: Sequence[np.ndarray], rate: int, file_rates: Sequence[int]
) -> Brightness:
    """Compare the spectra of N sounds and N recordings, float32[S], at `rate` Hz; file_rates: Hz of their files."""
    levels = np.array([_levels(sound, rate) for sound in sounds]) - [_levels(each, rate) for each in recordings]
    means = []
    for band, (_, high) in enumerate(_BANDS_HZ[1:]):
        known = levels[np.array(file_rates) >= 2 * high, band]
        means.append(float(known.mean()) if len(known) else None)
    return Brightness(level_4_to_8_khz=means[0], level_8_to_11_khz=means[1])


def _levels(samples: np.ndarray, rate: int) -> np.ndarray:
    """Measure the bands above 4 kHz of the speech in samples float32[S]: dB relative to the first band, float64[2]."""
    size = round(rate * _FRAME_SECONDS)
    frames = sliding_window_view(np.pad(samples, (0, max(0, size - len(samples)))), size)[:: size // 2]
    power, hertz = np.square(np.abs(np.fft.rfft(frames * np.hanning(size)))), np.fft.rfftfreq(size, 1 / rate)
    bands = np.stack([power[:, (low <= hertz) & (hertz < high)].sum(axis=1) for low, high in _BANDS_HZ])
    loudness = bands.sum(axis=0)
    decibels = 10 * np.log10(bands[:, loudness >= _SPEECH_GATE * loudness.max()].sum(axis=1) + 1e-12)
    return np.asarray(np.maximum(decibels[1:] - decibels[0], _INAUDIBLE_DB))
