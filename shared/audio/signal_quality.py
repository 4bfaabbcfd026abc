"""Measurements of a recording's quality: loudness, noise floor, clipping, silence at the ends, band, room."""

from dataclasses import dataclass

import numpy as np

QUIET_DB = -40.0
"""Speech below this level, dBFS, is quiet, and so will a voice trained on it be."""
NOISY_DB = 20.0
"""Speech less than this above the noise floor: white noise 20 dB below the speech gives it."""
_FRAME_SECONDS = 0.02
_SPEECH_GATE = 0.1
"""A frame with at least this share of the mean power is speech: at most 10 dB below the mean."""
_SILENCE_GATE = 1e-3
"""The ends are silent up to this share of the speech's power: 30 dB below the speech."""
_NOISE_PERCENTILE = 10.0
_DOMINANT = 4.0
"""Power of a channel, as a multiple of the others', from which it is the one that speaks."""
_DIGITAL_SILENCE = 1e-11
"""Power of -110 dBFS, below the last of 16 bits: zero padding, which says nothing about the noise of the room."""
_DECAY_FRAMES = 3
_DECAY_PERCENTILE = 90.0
_QUIETEST_DB = -120.0
_FULL_SCALE = np.float32(32766.5 / 32768)
_CLIPPED_RUN = 3
"""Fewest consecutive samples: an unclipped peak touches full scale once or twice."""
_BAND_WINDOW = 1024
_LEAST_SOUND = 1e-7
"""A bin with at least this share of the power holds sound."""


@dataclass(frozen=True, slots=True)
class SignalQuality:
    """Measurements of a decoded clip, at its own rate and before any trimming."""

    loudness_db: float
    """RMS of the speech in dBFS (a full-scale sine: -3.0), over frames of 20 ms at most 10 dB below the mean power."""
    noise_floor_db: float
    """10th percentile of the frames' power in dBFS, without digital silence; near the loudness if nothing pauses."""
    clipped_share: float
    """Share of the samples in runs of three or more at full scale, 0 to 1."""
    leading_silence: float
    """Seconds at the start more than 30 dB below the loudness, in steps of 20 ms."""
    trailing_silence: float
    """The same at the end."""
    band_hz: float
    """Highest frequency with 1e-7 of the power in a bin of 1/1024 of the rate: half the rate, or less after a lossy
    format, a filter or an upsampling. 0 if silent."""
    decay_db: float
    """Fall of the level within 60 ms where speech falls steepest, the 90th percentile of its frames. Medians of clips:
    14 to 22 dB near a microphone, below 13 dB with 0.3 s of reverberation 6 dB below the voice. 0 if silent."""
    other_channel_share: float = 0.0
    """Share of the speech's power in frames where another channel than the loudest is 6 dB above all others; 0 for one
    voice in all channels, above 0.05 for two people in two."""


def measure_signal(samples: np.ndarray, rate: int, channels: np.ndarray | None = None) -> SignalQuality | None:
    """Measure a mono clip, float32[S] at `rate` Hz; None if it is empty or not finite.

    channels: float32[S, channels], those of which it is the mean.
    """
    window = _window(rate)
    power = _frame_power(samples, window)
    if not power.size or not np.isfinite(power).all():
        return None
    sounding, mean = power[power > _DIGITAL_SILENCE], power.mean()
    if not sounding.size:
        return SignalQuality(_QUIETEST_DB, _QUIETEST_DB, 0.0, _stored(len(samples) / rate, 3), 0.0, 0.0, 0.0)
    speech = power[power >= _SPEECH_GATE * mean].mean()
    loud = np.flatnonzero(power > _SILENCE_GATE * speech)
    trailing = max(0, len(samples) - int(loud[-1] + 1) * window)
    return SignalQuality(
        loudness_db=_decibels(speech), noise_floor_db=_decibels(np.percentile(sounding, _NOISE_PERCENTILE)),
        clipped_share=_stored(_clipped_samples(samples) / len(samples), 6),
        leading_silence=_stored(int(loud[0]) * window / rate, 3), trailing_silence=_stored(trailing / rate, 3),
        band_hz=_stored(_band_end(samples, rate), 0), decay_db=_stored(_steepest_fall(power, speech), 2),
        other_channel_share=0.0 if channels is None else other_channel_share(channel_power(channels, rate)),
    )


def channel_power(channels: np.ndarray, rate: int) -> np.ndarray:
    """Measure the power of each channel's frames of 20 ms; channels: float32[S, channels], -> float64[channels, P]."""
    return np.stack([_frame_power(channel, _window(rate)) for channel in channels.T])


def other_channel_share(power: np.ndarray) -> float:
    """Return `SignalQuality.other_channel_share` from `channel_power`."""
    whole = power.sum(axis=0)
    spoken = whole >= _SPEECH_GATE * whole.mean()
    leads = power > _DOMINANT * (whole - power)
    ahead = np.sort((power * leads)[:, spoken].sum(axis=1))
    return _stored(ahead[:-1].sum() / max(whole[spoken].sum(), 1e-30), 3)


def _window(rate: int) -> int:
    return max(1, round(rate * _FRAME_SECONDS))


def _frame_power(samples: np.ndarray, window: int) -> np.ndarray:
    """Return the variance of each frame, float64, which an offset does not change; the last frame may be shorter."""
    starts = np.arange(0, len(samples), window)
    if not starts.size:
        return np.zeros(0)
    counts = np.minimum(window, len(samples) - starts)
    doubles = samples.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.add.reduceat(doubles, starts) / counts
        power: np.ndarray = np.add.reduceat(np.square(doubles, out=doubles), starts) / counts - np.square(means)
        return np.where(power < 0.0, 0.0, power)


def _clipped_samples(samples: np.ndarray) -> int:
    """Count the samples in runs at full scale."""
    if max(samples.max(), -samples.min()) < _FULL_SCALE:
        return 0
    full = np.abs(samples) >= _FULL_SCALE
    edges = np.flatnonzero(np.diff(full, prepend=False, append=False))
    lengths = edges[1::2] - edges[::2]
    return int(lengths[lengths >= _CLIPPED_RUN].sum())


def _band_end(samples: np.ndarray, rate: int) -> float:
    """Find the highest frequency in Hz that holds sound; 0 if there is none."""
    whole = samples[: max(len(samples) - len(samples) % _BAND_WINDOW, _BAND_WINDOW)]  # the cut end is not a sound
    padded = np.pad(whole, (0, -len(whole) % _BAND_WINDOW))
    window = np.hanning(_BAND_WINDOW)  # float64, in which the squares of any samples are finite
    spectrum = np.fft.rfft(padded.reshape(-1, _BAND_WINDOW) * window, axis=1)
    power = np.square(np.abs(spectrum)).mean(axis=0)
    sounding = np.flatnonzero(power > _LEAST_SOUND * power.sum())
    return float(sounding[-1] * rate / _BAND_WINDOW) if sounding.size else 0.0


def _steepest_fall(power: np.ndarray, speech: float) -> float:
    """Measure how far the power of frames falls after those of speech, in dB; 0 for a clip that is too short."""
    before, after = power[:-_DECAY_FRAMES], power[_DECAY_FRAMES:]
    spoken = before >= _SPEECH_GATE * speech
    if not spoken.any():
        return 0.0
    falls = 10.0 * np.log10(before[spoken] / np.maximum(after[spoken], _DIGITAL_SILENCE))
    return max(0.0, float(np.percentile(falls, _DECAY_PERCENTILE)))


def _decibels(power: float) -> float:
    return _stored(max(_QUIETEST_DB, 10.0 * float(np.log10(max(power, 1e-30)))), 2)


def _stored(value: float, digits: int) -> float:
    """Round a value to what the index returns: `digits` decimals, as float32."""
    return float(np.float32(round(float(value), digits)))
