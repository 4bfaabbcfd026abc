"""Voices of espeak-ng made distinct by variant, pitch, pitch range, pace and formants: voice n is always the same.

The five numbers of voice n are the n-th point of an additive sequence with irrational steps (Roberts, "The unreasonable
effectiveness of quasirandom sequences", 2018): it fills their space evenly, however many voices are made.
Formants are moved by resampling, as if by a vocal tract of another length; pitch and pace are asked of espeak-ng so
that they are right afterwards.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xtts.precompute.sample.espeak import PITCH, PITCH_RANGE, VOICE, WORDS_PER_MINUTE, speak
from xtts.shared.errors import LockstepError

MOST_VOICES = 999

# Variants of espeak-ng that differ in timbre, with the lowest pitch that each gives of itself, Hz.
_VARIANTS = {
    "": 82, "f1": 140, "f2": 142, "f4": 142, "f5": 160, "m2": 88, "m7": 75, "m8": 65, "belinda": 200, "boris": 82,
    "steph": 166, "michel": 82, "klatt": 82, "klatt4": 82, "adam": 82, "anika": 200, "rob": 50, "travis": 75,
}  # fmt: skip
_PITCH_HZ = (65.0, 190.0)
_FORMANTS = (0.84, 1.2)
_PACE = (115.0, 185.0)
_RANGES = (25.0, 85.0)
_TRACT_STEPS = 100  # scales are fractions of it, so that resampling is between whole rates


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleVoice:
    """How a voice speaks; the default is the language's own voice at the usual pace."""

    espeak: str = VOICE
    """A voice of espeak-ng, with its variant."""
    words_per_minute: int = WORDS_PER_MINUTE
    pitch: int = PITCH
    """0 to 100, in espeak-ng's steps: 50 is the voice's own, 0 an octave lower."""
    pitch_range: int = PITCH_RANGE
    """0 (monotone) to 100, in espeak-ng's steps."""
    formants: float = 1.0
    """By how much the formants are higher than the variant's own; 1.2 is a vocal tract a sixth shorter."""

    def speak(self, text: str, *, quicker: int = 0) -> npt.NDArray[np.int16]:
        """Speak a text at the voice's pace and `quicker` words a minute; int16[S] at 22,050 Hz."""
        pace = round((self.words_per_minute + quicker) / self.formants)
        samples = speak(text, self.espeak, words_per_minute=pace, pitch=self.pitch, pitch_range=self.pitch_range)
        if self.formants == 1.0 or len(samples) == 0:
            return samples
        import soxr  # only those who need it wait for it

        steps = round(self.formants * _TRACT_STEPS)
        moved = soxr.resample(samples.astype(np.float64), steps, _TRACT_STEPS, quality="HQ")
        peak = max(float(np.abs(moved).max()), 1.0)
        moved *= min(1.0, 32_000 / peak)
        heard: npt.NDArray[np.int16] = np.rint(moved).astype(np.int16)
        return heard


def sample_voices(count: int, language_voice: str = VOICE) -> dict[str, SampleVoice]:
    """The first `count` voices by name, `voice-001` and so on.

    language_voice: espeak-ng's voice of the language, without a variant.
    """
    if not 1 <= count <= MOST_VOICES:
        raise LockstepError("voices", found=str(count), expected=f"1 to {MOST_VOICES}")
    return {f"voice-{number + 1:03d}": _voice(number, language_voice) for number in range(count)}


def _voice(number: int, language_voice: str) -> SampleVoice:
    variant_place, high, long, quick, lively = _point(number, 5)
    variant = list(_VARIANTS)[int(variant_place * len(_VARIANTS))]
    formants = round(_between(_FORMANTS, long) * _TRACT_STEPS) / _TRACT_STEPS
    octaves = math.log2(_between(_PITCH_HZ, high) / (_VARIANTS[variant] * formants))
    return SampleVoice(
        espeak=f"{language_voice}+{variant}" if variant else language_voice,
        words_per_minute=round(_between(_PACE, quick)),
        pitch=min(max(round(PITCH + 50 * octaves), 0), 99),
        pitch_range=round(_between(_RANGES, lively)),
        formants=formants,
    )


def _point(number: int, dimensions: int) -> list[float]:
    """Point `number` of the sequence in 0..1; its steps are powers of the root of x^(d+1) = x + 1."""
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    return [(0.5 + (number + 1) * root ** -(place + 1)) % 1.0 for place in range(dimensions)]


def _between(limits: tuple[float, float], share: float) -> float:
    """A value between two limits, evenly in its logarithm."""
    low, high = limits
    return float(low * (high / low) ** share)
