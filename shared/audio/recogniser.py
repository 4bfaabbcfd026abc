"""Speech recognition: Silero's voice activity detection and Whisper, both of faster-whisper, on the CPU.

Samples are float32[S] at 16 kHz, times are seconds from their start, languages are ISO 639 codes.
"""

from typing import Any

import numpy as np
import soxr

from xtts.shared.errors import LockstepError, import_extra
from xtts.shared.languages import MANDARIN

Interval = tuple[float, float]
"""(start, end) in seconds."""

RATE = 16_000
_SHORTEST_PAUSE_MS = 100
_MOST_LETTERS_PER_SECOND = 30
"""A transcript with more is a loop: people read 10 to 20."""
_UNIQUE_TOKENS = 3
"""Length of the sequences of tokens that may occur once, when a loop is transcribed again."""


class Recogniser:
    """Detects speech and its language, and transcribes it."""

    def __init__(self, asr: str, language: str | None) -> None:
        """Load the models, which takes seconds; asr: a size of Whisper that is downloaded, or a folder with one.

        Raises:
            LockstepError: The extra is missing, Whisper cannot be loaded, or it does not know the language.
        """
        library = import_extra("faster_whisper", "transcribe", "transcribe", "faster-whisper is not installed")
        self._vad: Any = library.vad
        self._whisper = load_whisper(library, asr)
        codes = self._whisper.supported_languages
        if language is not None and _whispers_code(language) not in codes:
            raise LockstepError("--language", found=repr(language), expected=f"one of {', '.join(sorted(codes))}")

    def speech(self, samples: np.ndarray) -> list[Interval]:
        """Detect speech: intervals in ascending order."""
        options = self._vad.VadOptions(min_silence_duration_ms=_SHORTEST_PAUSE_MS, speech_pad_ms=0)
        spoken = self._vad.get_speech_timestamps(samples, options, RATE)
        return [(interval["start"] / RATE, interval["end"] / RATE) for interval in spoken]

    def language(self, samples: np.ndarray) -> str:
        """Detect the language of the first half minute of speech."""
        return str(self._whisper.detect_language(samples)[0])

    def words(self, samples: np.ndarray, language: str) -> list[Interval]:
        """Transcribe speech of any length: the times of its words."""
        segments = self._segments(samples, language, word_timestamps=True)
        return [(word.start, word.end) for segment in segments for word in segment.words]

    def transcribe(self, samples: np.ndarray, language: str) -> tuple[str, float]:
        """Transcribe a clip, the same each time; return its text, in one line, and the confidence, from 0 to 1.

        The confidence is the geometric mean of the tokens' probabilities; of wrong letters it finds more than the mean
        of the words'. At temperature 0 Whisper may repeat a phrase without end. Then the clip is transcribed again,
        without repeating any three tokens; its confidence is 0, as it is if no speech was recognised.
        """
        segments = self._segments(samples, language)
        is_loop = len(_text(segments)) > _MOST_LETTERS_PER_SECOND * len(samples) / RATE
        if is_loop:
            segments = self._segments(samples, language, no_repeat_ngram_size=_UNIQUE_TOKENS)
        logarithms = [segment.avg_logprob for segment in segments]
        return _text(segments), 0.0 if is_loop or not segments else float(np.exp(np.mean(logarithms)))

    def _segments(self, samples: np.ndarray, language: str, **options: int) -> list[Any]:
        segments, _ = self._whisper.transcribe(
            samples, language=_whispers_code(language), beam_size=5, temperature=0.0, condition_on_previous_text=False,
            **options,
        )
        return list(segments)


def load_whisper(library: Any, asr: str) -> Any:  # noqa: ANN401 - faster-whisper has no types
    """Load a model of the library faster_whisper; `LockstepError` if it cannot be loaded. asr: see `Recogniser`."""
    try:
        return library.WhisperModel(asr, device="cpu", compute_type="int8")
    except (OSError, RuntimeError, ValueError) as error:  # offline; no model in the folder; no such size
        raise LockstepError(
            "--asr", found=f"{asr}, which cannot be loaded ({str(error).splitlines()[0]})",
            expected="a size of Whisper to download, such as base, or the folder of a faster-whisper model",
        ) from None


def at_16_khz(samples: np.ndarray, rate: int) -> np.ndarray:
    """Resample int16[S] for the recogniser: float32[S] in -1 to 1."""
    return np.asarray(soxr.resample(samples / np.float32(32768), rate, RATE), np.float32)


def _text(segments: list[Any]) -> str:
    """Return the text of segments, without the separator of `metadata.csv`."""
    return " ".join(" ".join(segment.text for segment in segments).replace("|", " ").split())


def _whispers_code(language: str) -> str:
    return "zh" if language in MANDARIN else language
