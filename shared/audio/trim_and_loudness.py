"""Optional conditioning of a clip: cutting silence at its ends, and bringing it to a loudness."""

import numpy as np

from xtts.shared.audio.decode import AudioProblem

_TRIM_WINDOW_SECONDS = 0.01
_KEPT_SECONDS = 0.05
"""Left before the first and after the last loud window, so that soft onsets stay."""

_BLOCK_SECONDS, _BLOCK_STEP_SECONDS = 0.4, 0.1
_SHELF = (True, 1681.974450955533, 0.7071752369554196)
_HIGH_PASS = (False, 38.13547087602444, 0.5003270373238773)
"""Whether it is the shelf, the corner in Hz, and the quality of the filters of the K-weighting."""
_ABSOLUTE_GATE_LUFS, _RELATIVE_GATE_LU = -70.0, -10.0


def condition(
    samples: np.ndarray, *, rate: int, trim_silence_db: float | None, loudness_lufs: float | None
) -> np.ndarray:
    """The samples that a mel is computed of: trimmed and scaled as `AudioConfig` says. float32[S].

    Raises `AudioProblem` for digital silence.
    """
    if trim_silence_db is not None:
        samples = trim_silence(samples, rate, trim_silence_db)
    if not samples.size or samples.min() == samples.max():
        raise AudioProblem("empty audio", "only digital silence")
    return samples if loudness_lufs is None else set_loudness(samples, rate, loudness_lufs)


def trim_silence(samples: np.ndarray, rate: int, below_peak_db: float) -> np.ndarray:
    """Cut the ends that are quieter than the loudest 10 ms by more than `below_peak_db`; empty for digital silence.

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
    """Scale a clip to an integrated loudness, by less where its peak would pass full scale; silence stays."""
    measured = integrated_loudness(samples, rate)
    if not np.isfinite(measured):
        return samples
    gain = min(10 ** ((lufs - measured) / 20), 1.0 / float(np.abs(samples).max()))
    return samples * np.float32(gain)


def integrated_loudness(samples: np.ndarray, rate: int) -> float:
    """Gated loudness in LUFS, ITU-R BS.1770-4; a clip shorter than one block is one block."""
    weighted = np.square(_weigh(samples.astype(np.float64), rate))
    block, step = round(rate * _BLOCK_SECONDS), round(rate * _BLOCK_STEP_SECONDS)
    starts = range(0, max(1, len(weighted) - block + 1), step)
    power = np.array([weighted[start : start + block].mean() for start in starts])
    power = power[_lufs(power) > _ABSOLUTE_GATE_LUFS]
    if not power.size:
        return float("-inf")
    power = power[_lufs(power) > _lufs(power.mean()) + _RELATIVE_GATE_LU]
    return float(_lufs(power.mean()))


def _lufs(power: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        loudness: np.ndarray = -0.691 + 10.0 * np.log10(power)
    return loudness


def _weigh(samples: np.ndarray, rate: int) -> np.ndarray:
    """K-weighting: the standard's shelf and high-pass, given there for 48 kHz, as analogue prototypes for any rate."""
    from scipy.signal import lfilter  # a third of a second, for the few who ask for it

    for shelf, hertz, quality in (_SHELF, _HIGH_PASS):
        k = np.tan(np.pi * hertz / rate)
        norm = 1.0 + k / quality + k * k
        if shelf:
            high = 10 ** (3.999843853973347 / 20)
            band = high**0.4996667741545416
            top = [high + band * k / quality + k * k, 2.0 * (k * k - high), high - band * k / quality + k * k]
            numerator = [value / norm for value in top]
        else:
            numerator = [1.0, -2.0, 1.0]
        denominator = [1.0, 2.0 * (k * k - 1.0) / norm, (1.0 - k / quality + k * k) / norm]
        samples = lfilter(numerator, denominator, samples)
    return samples
