"""Judgements of speech by published models: misheard letters, predicted opinion scores, similarity of the speaker.

All run on a CPU at 16 kHz. They come with the extra `judge`; only Whisper's weights are downloaded.
"""

import importlib
import re
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from types import ModuleType
from typing import Any

import numpy as np
import soxr

from xtts.shared.audio.recogniser import load_whisper
from xtts.shared.audio.speaker_encoder import embed_speaker
from xtts.shared.errors import LockstepError

_RATE = 16_000
_LOOP = 2
"""A transcript with more than this many times the letters of the text is a loop."""
_UNIQUE_TOKENS = 3
"""Length of the sequences of tokens that may occur once, when a loop is transcribed again."""
_MODULES = ("distillmos", "faster_whisper", "jiwer", "speechmos.dnsmos", "torch")


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """Speech of a known text."""

    samples: np.ndarray
    """float32[S] in -1 to 1."""
    text: str
    language: str
    """ISO 639 code."""
    speaker: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The models' verdict on one utterance."""

    transcript: str
    """What Whisper understood."""
    character_error_rate: float
    """Insertions, deletions and substitutions over the letters of its text, without marks, spaces and case."""
    distillmos: float
    """Opinion score from 1 to 5 that DistillMOS predicts (Stahl and Gamper, ICASSP 2025)."""
    dnsmos: float
    """Overall opinion score that DNSMOS P.835 predicts (Reddy et al., ICASSP 2022)."""
    similarity: float | None
    """Cosine between its speaker embedding (Resemblyzer) and the mean of the speaker's other recordings; None without
    others."""
    other_similarity: float | None
    """The same with the most similar one of the other speakers; None without others."""


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """The verdicts on several utterances together: means, except for the error rate."""

    character_error_rate: float
    """Errors in all utterances over the letters of all."""
    distillmos: float
    distillmos_error: float
    """Standard error of the mean."""
    dnsmos: float
    similarity: float | None
    other_similarity: float | None
    nearest_speaker: float | None
    """Share of the utterances that are more similar to their own speaker than to any other."""


class Judge:
    """The models that judge; loading them takes seconds."""

    def __init__(self, asr: str) -> None:
        """Load the models; asr: a size of Whisper that faster-whisper downloads, or a folder with one.

        Raises:
            LockstepError: A package of the extra is missing, or Whisper cannot be loaded.
        """
        mos, whisper, self._jiwer, self._dnsmos, self._torch = _modules()
        with redirect_stdout(StringIO()):  # it prints the path of its weights
            self._mos = mos.ConvTransformerSQAModel().eval()
        self._whisper = load_whisper(whisper, asr)

    def judge(self, spoken: Sequence[Utterance], rate: int, recorded: Sequence[np.ndarray]) -> list[Verdict]:
        """Judge each utterance; rate: Hz, recorded: speaker embeddings of recordings of the same texts, in order."""
        return [
            self._verdict(_at_16_khz(utterance.samples, rate), utterance, _speakers_beside(spoken, recorded, i))
            for i, utterance in enumerate(spoken)
        ]

    def embed(self, samples: np.ndarray, rate: int) -> np.ndarray:
        """Embed the speaker of a recording float32[S]: float32[256], of norm 1."""
        return embed_speaker(_at_16_khz(samples, rate))

    def summarise(self, spoken: Sequence[Utterance], verdicts: Sequence[Verdict]) -> Opinion:
        """Summarise the verdicts on at least one utterance."""
        texts, transcripts = [_letters(each.text) for each in spoken], [_letters(each.transcript) for each in verdicts]
        opinions = np.array([verdict.distillmos for verdict in verdicts])
        own, others = ([getattr(verdict, name) for verdict in verdicts] for name in ("similarity", "other_similarity"))
        both = [(a, b) for a, b in zip(own, others, strict=True) if a is not None and b is not None]
        return Opinion(
            character_error_rate=float(self._jiwer.cer(texts, transcripts)),
            distillmos=float(opinions.mean()),
            distillmos_error=float(opinions.std() / len(opinions) ** 0.5),
            dnsmos=float(np.mean([verdict.dnsmos for verdict in verdicts])),
            similarity=_known_mean(own), other_similarity=_known_mean(others),
            nearest_speaker=_known_mean([float(a > b) for a, b in both]),
        )

    def _verdict(self, samples: np.ndarray, utterance: Utterance, speakers: dict[int, np.ndarray]) -> Verdict:
        with self._torch.no_grad():
            opinion = float(self._mos(self._torch.from_numpy(samples)[None]))
        transcript = transcribe(self._whisper.transcribe, samples, utterance.language, utterance.text)
        embedding = embed_speaker(samples)
        similarities = {speaker: float(embedding @ mean) for speaker, mean in speakers.items()}
        return Verdict(
            transcript=transcript,
            character_error_rate=float(self._jiwer.cer(_letters(utterance.text), _letters(transcript))),
            distillmos=opinion,
            dnsmos=float(self._dnsmos.run(samples, sr=_RATE)["ovrl_mos"]),
            similarity=similarities.pop(utterance.speaker, None),
            other_similarity=max(similarities.values(), default=None),
        )


def transcribe(
    recognise: Callable[..., tuple[Iterable[Any], object]], samples: np.ndarray, language: str, text: str
) -> str:
    """Transcribe samples float32[S] at 16 kHz with Whisper's `transcribe`, the same each time.

    At temperature 0 Whisper may repeat a phrase without end, and one sentence with a thousand errors decides the mean.
    So speech that seems far longer than its text is transcribed again, without repeating any three tokens.
    """
    for forbidden in ({}, {"no_repeat_ngram_size": _UNIQUE_TOKENS}):
        segments, _ = recognise(
            samples, language=language, beam_size=5, temperature=0.0, condition_on_previous_text=False, **forbidden
        )
        transcript = " ".join(segment.text.strip() for segment in segments)
        if len(_letters(transcript)) <= _LOOP * len(_letters(text)):
            break
    return transcript


def _modules() -> list[ModuleType]:
    """Import the modules of the extra; `LockstepError` names those that are missing."""
    loaded, missing = [], []
    with warnings.catch_warnings(action="ignore"):  # deprecations
        for name in _MODULES:
            try:
                loaded.append(importlib.import_module(name))
            except ImportError as error:
                missing.append(error.name or name)
    if missing:
        raise LockstepError(
            "--judge", found=f"no {', '.join(dict.fromkeys(missing))}", expected="the packages of the extra judge",
            fix="pip install 'lockstep-tts[judge]'",
        )
    return loaded


def _at_16_khz(samples: np.ndarray, rate: int) -> np.ndarray:
    resampled = soxr.resample(samples, rate, _RATE).astype(np.float32)
    return np.asarray(resampled / np.float32(max(1.0, float(np.abs(resampled).max(initial=0.0)))))


def _speakers_beside(spoken: Sequence[Utterance], recorded: Sequence[np.ndarray], i: int) -> dict[int, np.ndarray]:
    """Mean embedding, of norm 1, of each speaker's recordings; of texts that differ from the i-th one's."""
    embeddings = defaultdict[int, list[np.ndarray]](list)
    for other, embedding in zip(spoken, recorded, strict=True):
        if other.text != spoken[i].text:
            embeddings[other.speaker].append(embedding)
    means = {speaker: np.mean(each, axis=0) for speaker, each in embeddings.items()}
    return {speaker: mean / np.linalg.norm(mean) for speaker, mean in means.items()}


def _known_mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _letters(text: str) -> str:
    """Keep the letters and digits of a text, in lower case."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text.lower()))
