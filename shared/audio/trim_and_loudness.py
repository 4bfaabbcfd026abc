"""Optional conditioning of a clip: trimming silence at its ends, and setting its loudness."""

import numpy as np

from xtts.shared.audio.decode import AudioProblem

_TRIM_WINDOW_SECONDS = 0.01
_KEPT_SECONDS = 0.05
"""Kept before the first and after the last loud window, so that soft onsets stay."""

_BLOCK_SECONDS = 0.4
_SILENT_RANGE = 2**-13
"""Range of samples below which a clip is silent: four steps of 16 bits, as in dither."""
_LARGEST_SAMPLE = 32
"""Largest float sample: floats may pass 1 a little, but unscaled 16-bit values pass it by far."""


def condition(
    samples: np.ndarray, *, rate: int, trim_silence_db: float | None, loudness_lufs: float | None
) -> np.ndarray:
    """Trim and scale samples float32[S] for the mel as `AudioConfig` says.

    Raises `AudioProblem` for silence, and for floats in the range of integers.
    """
    if trim_silence_db is not None:
        samples = trim_silence(samples, rate, trim_silence_db)
    refuse_silence(samples)
    if np.ptp(samples) > 2 * _LARGEST_SAMPLE:
        raise AudioProblem("unreadable audio", f"samples up to {np.abs(samples).max():g}, expected floats from -1 to 1")
    return samples if loudness_lufs is None else set_loudness(samples, rate, loudness_lufs)


def refuse_silence(samples: np.ndarray) -> None:
    """Raise `AudioProblem` for samples float32[S] without sound: a constant, or noise of the least bit.

    Resampling hides both: it rings at the ends of a constant, and noise overshoots.
    """
    if not samples.size or np.ptp(samples) < _SILENT_RANGE:
        raise AudioProblem("empty audio", "only silence")


def trim_silence(samples: np.ndarray, rate: int, below_peak_db: float) -> np.ndarray:
    """Trim ends that are quieter than the loudest 10 ms by more than `below_peak_db`; empty for digital silence.

    samples: float32[S].
    """
    window = max(1, round(rate * _TRIM_WINDOW_SECONDS))
    count = -(-len(samples) // window)
    power = np.square(np.pad(samples, (0, count * window - len(samples))), dtype=np.float64).reshape(count, window)
    level = power.mean(axis=1)
    loud = np.flatnonzero((level > level.max() * 10 ** (-below_peak_db / 10)) & (level > 0))
    if not loud.size:
        return samples[:0]
    kept = round(rate * _KEPT_SECONDS)
    return samples[max(0, int(loud[0]) * window - kept) : int(loud[-1] + 1) * window + kept]


def set_loudness(samples: np.ndarray, rate: int, lufs: float) -> np.ndarray:
    """Scale a clip to an integrated loudness, or less if its peak would pass full scale; silence is unchanged."""
    measured = integrated_loudness(samples, rate)
    if not np.isfinite(measured):
        return samples
    gain = min(10 ** ((lufs - measured) / 20), 1.0 / float(np.abs(samples).max()))
    return samples * np.float32(gain)


def integrated_loudness(samples: np.ndarray, rate: int) -> float:
    """Measure the gated loudness in LUFS, ITU-R BS.1770-4, by `pyloudnorm`; a shorter clip is one block."""
    from pyloudnorm import Meter  # takes 0.3 s, for the few who use it

    # De Man's filters are those of the standard, which gives them for 48 kHz only, at any rate.
    meter = Meter(rate, filter_class="DeMan", block_size=min(_BLOCK_SECONDS, len(samples) / rate))
    return float(meter.integrated_loudness(samples))
