"""The voice of a server: loaded once, its steps compiled before the first request."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.serve import metrics
from xtts.trainer.serve.settings import ServerSettings
from xtts.trainer.serve.speech_requests import Offer, SpeechRequest
from xtts.trainer.synth.encodings import Encoder, available_formats
from xtts.trainer.synth.engines import make_fastest_synthesizer, make_synthesizer
from xtts.trainer.synth.long_form import LongFormSynthesizer, encode_text
from xtts.trainer.synth.vocoder.vocoder import check_vocoder, make_vocoder
from xtts.trainer.synth.voice_source import Source, open_source, read_recordings

_ONLY_VOICE = "default"


@dataclass
class Spoken:
    """What is known of an answer besides its bytes; the speech thread fills it."""

    mels: list[np.ndarray] = field(default_factory=list)
    """float32[T, M] of every piece so far, natural-log magnitude."""
    warnings: list[str] = field(default_factory=list)


class Part(NamedTuple):
    """What one step of the work for a request gives."""

    data: bytes = b""
    """Bytes to send, if there are any yet."""
    last: bool = False
    """Whether the work ends with it."""


class WarmVoice:
    """Speaks requests; used by one thread at a time.

    Raises:
        LockstepError: The checkpoint cannot be read, or vocoder or recordings do not fit it.
    """

    def __init__(self, settings: ServerSettings, warn: Callable[[str], None], tell: Callable[[str], None]) -> None:
        """Load the voice; `warn` gets what may be wrong with it, `tell` the engine's choice and long work."""
        self._settings = settings
        check_vocoder(settings.vocoder)
        self.source = open_source(settings.checkpoint)
        options = settings.synthesis(settings.nfe[0])
        self._mel_profile = self.source.voice.mel_profile
        self._recordings = _recordings(settings.recordings, self.source)
        self.offer = Offer(
            model=(self.source.run.path if self.source.run else self.source.checkpoint).resolve().name,
            voices=list(self._recordings) or self.source.speakers or [_ONLY_VOICE],
            languages=self.source.languages,
            nfe=list(settings.nfe),
            synthesis=options,
            formats=available_formats(),
            sample_rate=self._mel_profile.sample_rate,
            mel_channels=self._mel_profile.mel_channels,
            letters=settings.max_letters,
        )
        self._vocoder = make_vocoder(settings.vocoder, self._mel_profile, warn)
        self._long_form: dict[tuple[str, str], LongFormSynthesizer] = {}
        self._reference: str | None = None
        if settings.engine == "auto":
            self.synthesizer = make_fastest_synthesizer(self.source, options, tell)
        else:
            self.synthesizer = make_synthesizer(self.source, options, settings.engine, tell)
        for mel in [*self._recordings.values()][:1]:
            self.synthesizer.encode_reference(mel)
        self._prepared: list[int] = []
        self._preparation = self._prepare_all()

    def prepare(self, nfe: int | None = None) -> Iterator[Part]:
        """Compile or load every shape for a number of evaluations, by default for all of the offer.

        Gives an empty part each time. All are traced before the first is run, so that the next start finds every one in
        XLA's cache.
        """
        while (len(self._prepared) < len(self.offer.nfe)) if nfe is None else (nfe not in self._prepared):
            yield next(self._preparation)

    def _prepare_all(self) -> Iterator[Part]:
        for nfe in self.offer.nfe:
            self.synthesizer.options = self._settings.synthesis(nfe)
            self.synthesizer.trace(self.source.voice.shapes[-1])
        for nfe in self.offer.nfe:
            for shape in (shapes := self.source.voice.shapes):
                self.synthesizer.options = self._settings.synthesis(nfe)
                self.synthesizer.prepare(shape)
                if shape == shapes[-1]:
                    self._prepared.append(nfe)
                yield Part()

    def speak(self, request: SpeechRequest, spoken: Spoken) -> Iterator[Part]:
        """The bytes of an answer, empty where there are none to send yet; between two steps others may speak.

        Raises `LockstepError` if nothing in the text can be spoken.
        """
        assert request.voice is not None
        assert request.language is not None
        yield from self.prepare(request.nfe)
        synthesizer = self._speaking(request.voice, request.language)
        text, unknown = encode_text(request.input, self.source.voice, request.language, "input")
        spoken.warnings += unknown
        encoder = Encoder(request.response_format, self.offer.sample_rate, streams=request.streams)
        pieces, last = synthesizer.pieces(text), False
        while not last:
            began = time.perf_counter()
            self._become(request.voice, request)
            piece = next(pieces)
            last = piece.last
            data = encoder.add(piece.samples) + (encoder.finish() if last else b"")
            spoken.mels.append(piece.mel)
            metrics.PIECES.inc()
            metrics.AUDIO_SECONDS.inc(len(piece.samples) / self.offer.sample_rate)
            metrics.SYNTHESIS_SECONDS.inc(time.perf_counter() - began)
            yield Part(data, last)

    def _speaking(self, voice: str, language: str) -> LongFormSynthesizer:
        if (voice, language) not in self._long_form:
            row = self.source.speakers.index(voice) if voice in self.source.speakers else 0
            self._long_form[voice, language] = LongFormSynthesizer(
                self.synthesizer, self._vocoder, speaker=row, language=language
            )
        return self._long_form[voice, language]

    def _become(self, voice: str, options: SynthesisOptions) -> None:
        """Set what the synthesizer keeps from call to call: another request may have spoken in between."""
        self.synthesizer.options = options
        if voice in self._recordings and self._reference != voice:
            self.synthesizer.encode_reference(self._recordings[voice])
            self._reference = voice


def _recordings(paths: tuple[Path, ...], source: Source) -> dict[str, np.ndarray]:
    """The log-mel float32[T, M] of every reference recording by the name of its file."""
    found: dict[str, np.ndarray] = {}
    for path, mel in zip(paths, read_recordings(paths, source), strict=True):
        if path.stem in found:
            raise LockstepError("--speaker-wav", found=f"two recordings called {path.stem}", expected="other names")
        found[path.stem] = mel
    return found
