"""Trimming silence at the ends of a clip, its loudness, and gain without clipping."""

import math

import numpy as np

from xtts.shared.audio.decode import AudioProblem

_TRIM_WINDOW_SECONDS = 0.01
_KEPT_SECONDS = 0.05
"""Margin before the first and after the last loud window, so that soft onsets stay."""

_BLOCK_SECONDS = 0.4
_ABSOLUTE_GATE, _RELATIVE_GATE = -70.0, 0.1
"""Gates of BS.1770-4, below which blocks do not count: -70 LUFS, and 10 LU below the mean of the rest."""
_HIGHEST_PEAK = 10 ** (-1.0 / 20)
"""Largest true peak of amplified speech, -1 dB, as EBU R 128 requires."""
_LIMITER_SECONDS = 0.01
"""Time before and after a peak in which the gain falls and rises, a period of a low voice."""
_SILENT_RANGE = 2**-13
"""Range of samples below which a clip is silent: four steps of 16 bits, as in dither."""
_LARGEST_SAMPLE = 32
"""Largest float sample: floats may pass 1 a little, but unscaled 16-bit values pass it by far."""


def condition(
    samples: np.ndarray, *, rate: int, trim_silence_db: float | None, loudness_lufs: float | None
) -> np.ndarray:
    """Trim and scale samples float32[S] for the mel as `AudioConfig` specifies.

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
    """Measure the gated loudness in LUFS, ITU-R BS.1770-4; a clip shorter than a block is one block."""
    size = len(samples) + rate // 2  # by then the filters have decayed
    spectrum = np.fft.rfft(samples.astype(np.float64), size) * _k_weighting(np.fft.rfftfreq(size, 1 / rate), rate)
    energy = np.cumsum(np.square(np.fft.irfft(spectrum, size)[: len(samples)]))
    block = min(round(_BLOCK_SECONDS * rate), len(samples))
    ends = np.arange(block - 1, len(samples), max(block // 4, 1))
    power = np.diff(np.stack([np.where(ends < block, 0.0, energy[ends - block]), energy[ends]]), axis=0)[0] / block
    power = power[power > 10 ** ((_ABSOLUTE_GATE + 0.691) / 10)]
    power = power[power > _RELATIVE_GATE * power.mean()] if power.size else power
    return -0.691 + 10 * math.log10(power.mean()) if power.size else -math.inf


def _k_weighting(frequencies: np.ndarray, rate: int) -> np.ndarray:
    """Response of the two filters of the standard, which has them for 48 kHz only, at any rate: De Man's formulas."""
    shelf_gain, shelf_q, pass_q = 10 ** (3.999843853973347 / 20), 0.7071752369554196, 0.5003270373238773
    corner = math.tan(math.pi * 38.13547087602444 / rate)
    tangent = 1j * np.tan(np.pi * frequencies / rate)
    s = tangent / math.tan(math.pi * 1681.974450955533 / rate)
    shelf = (1 + shelf_gain**0.4996667741545416 / shelf_q * s + shelf_gain * s**2) / (1 + s / shelf_q + s**2)
    s = tangent / corner
    return np.asarray(shelf * (1 + corner / pass_q + corner**2) * s**2 / (1 + s / pass_q + s**2))


def amplify(samples: np.ndarray, rate: int, gain: float) -> np.ndarray:
    """Scale samples float32[S] by a constant gain, but by less around true peaks that would pass -1 dB."""
    import soxr  # slow import

    scaled = samples * np.float32(gain)
    between = np.abs(soxr.resample(scaled, rate, 4 * rate))
    if between.max(initial=0.0) <= _HIGHEST_PEAK:
        return scaled
    peaks = np.pad(between, (0, 4))[: 4 * len(scaled)].reshape(-1, 4).max(axis=1)
    reach = round(_LIMITER_SECONDS * rate)
    lowered = np.pad(_HIGHEST_PEAK / np.maximum(peaks, _HIGHEST_PEAK), 2 * reach, constant_values=1.0)
    held = np.lib.stride_tricks.sliding_window_view(lowered, 2 * reach + 1).min(axis=1)
    return scaled * np.convolve(held, np.full(2 * reach + 1, 1 / (2 * reach + 1)), "valid").astype(np.float32)
