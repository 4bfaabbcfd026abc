"""What is wrong with a take, in words: level, noise, clipping, cut ends, length."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import numpy as np

from xtts.shared.audio.signal_quality import NOISY_DB, QUIET_DB, SignalQuality, measure_signal
from xtts.shared.errors import LockstepError
from xtts.trainer.record.prompts import phonemes
from xtts.trainer.speech.loaded_voice import load_voice
from xtts.trainer.speech.vocoder import OUR_VOICE

_NOTHING_DB = -65.0
"""Level in dBFS below which a microphone has sent nothing."""
_SHORTEST_EDGE = 0.06
"""Seconds of silence at an end with less of which a word may be cut off."""
_LONGEST, _SHORTEST = 1.8, 0.55
"""Shares of a sentence's expected length, at the reader's pace, beyond which something else was said."""
_KNOWN_PACE, _PACES = 5, (0.6, 1.7)
"""Takes from which the reader's pace is known, and its limits, as a share of our voice's."""
_PHONEMES_PER_SECOND = 12.0
"""Of languages that our voice does not speak."""
SILENCE_SECONDS = 5.0
"""Silence before the test sentence."""


@dataclass(frozen=True, kw_only=True)
class CheckedTake:
    """Measurements of a take."""

    quality: SignalQuality | None
    seconds: float
    """Of speech, without the silence at its ends."""
    expected: float
    """Seconds in which our voice would say it."""


def check_take(samples: np.ndarray, rate: int, expected: float) -> CheckedTake:
    """Measure samples float32[S]; expected: seconds of the sentence."""
    quality = measure_signal(samples, rate)
    silence = quality.leading_silence + quality.trailing_silence if quality else 0.0
    return CheckedTake(quality=quality, seconds=max(0.0, len(samples) / rate - silence), expected=expected)


def reading_pace(takes: Mapping[int, CheckedTake]) -> float:
    """Return the reader's usual length of a sentence as a share of the expected one."""
    ratios = [take.seconds / take.expected for take in takes.values()]
    return min(max(median(ratios), _PACES[0]), _PACES[1]) if len(ratios) >= _KNOWN_PACE else 1.0


def faults(take: CheckedTake, pace: float) -> list[tuple[float, str]]:
    """Return (weight, words) of what is wrong with a take; the heaviest should be recorded again first."""
    quality = take.quality
    if quality is None or quality.loudness_db < _NOTHING_DB:
        return [(9.0, "silence: the microphone sent nothing; choose another one (Bluetooth ones often send none)")]
    level, above_noise = quality.loudness_db, quality.loudness_db - quality.noise_floor_db
    expected = take.expected * pace
    length, lengths = take.seconds / expected, f"{take.seconds:.1f} s, expected about {expected:.1f} s"
    checks = [
        (quality.clipped_share > 0, 6.0, "clipped: move back, or lower the input level"),
        (quality.leading_silence < _SHORTEST_EDGE, 5.0, "cut off at the beginning: wait a moment before you speak"),
        (quality.trailing_silence < _SHORTEST_EDGE, 5.0, "cut off at the end: wait a moment before you stop"),
        (length > _LONGEST, 3.0 + min(length, 3.0), f"far longer than the sentence ({lengths}): was more said?"),
        (length < _SHORTEST, 4.0, f"far shorter than the sentence ({lengths}): is a word missing?"),
        (level < QUIET_DB, 3.0, f"too quiet ({level:.0f} dBFS): move closer"),
        (above_noise < NOISY_DB, 2.0, f"noisy, only {above_noise:.0f} dB below the speech: is a fan or a street near?"),
    ]
    return [(weight, words) for is_wrong, weight, words in checks if is_wrong]


def check_room(samples: np.ndarray, rate: int) -> tuple[bool, str]:
    """Judge five seconds of silence and a sentence, float32[S]: (whether they are good, in words)."""
    border = round(SILENCE_SECONDS * rate)
    silence, speech = measure_signal(samples[:border], rate), measure_signal(samples[border:], rate)
    if speech is None or silence is None or speech.loudness_db < _NOTHING_DB:
        return False, "The microphone sends nothing. Choose another one; Bluetooth microphones often send none."
    noise = float(10 * np.log10(np.var(samples[:border]) + 1e-12))
    above, advice = speech.loudness_db - noise, list[str]()
    if speech.clipped_share:
        advice.append("The sound is clipped: move back, or lower the input level.")
    if speech.loudness_db < QUIET_DB:
        advice.append("You are too quiet: move closer, or raise the input level.")
    if above < NOISY_DB:
        advice.append(
            f"It is noisy, only {above:.0f} dB below your voice: switch the fan off, close the window, or move closer."
        )
    figures = f"Level {speech.loudness_db:.0f} dBFS, noise {above:.0f} dB below it."
    return not advice, " ".join([*(advice or ["Good."]), figures])


@lru_cache
def expected_seconds(language: str) -> Callable[[str], float]:
    """Return a function from a sentence to the seconds in which our voice, or an average one, would say it."""

    @lru_cache(1)
    def load() -> Callable[[str], float]:
        voice = load_voice(OUR_VOICE, language=language)

        def spoken(text: str) -> float:
            return check_take(voice.speak(text).samples, voice.sample_rate, 1.0).seconds

        return spoken

    @lru_cache(None)
    def seconds(text: str) -> float:
        try:
            return max(load()(text), 0.2)
        except LockstepError:  # a language that it does not speak
            return max(len(phonemes(text, language)) / _PHONEMES_PER_SECOND, 0.2)

    return seconds
