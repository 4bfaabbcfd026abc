"""The voice of a server, loaded once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xtts.shared.audio.speaker_encoder import recorded_voice
from xtts.shared.errors import LockstepError
from xtts.trainer.serve.settings import ServerSettings
from xtts.trainer.serve.speech_requests import Capabilities, SpeechRequest
from xtts.trainer.speech.long_form import LoadedVoice, MelPiece, encode_text
from xtts.trainer.speech.reference_recordings import read_recordings, read_sound
from xtts.trainer.speech.synthesizer import Synthesizer, load_synthesizer
from xtts.trainer.speech.vocoder import check_vocoder, make_vocoder
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.speech.word_times import times_json

_ONLY_VOICE = "default"
_LONGEST_NAME, _MOST_VOICES = 60, 100
"""Limits on the voices that clients add; the mel of 30 s takes a megabyte."""


@dataclass
class SpeechResult:
    """The result of a job besides its audio; the speech thread fills it in."""

    warnings: list[str] = field(default_factory=list)
    times: dict[str, object] = field(default_factory=dict)
    """`times_json` of the words, if the request asks for them."""


class Piece(NamedTuple):
    """A piece of a text that has a mel and no samples yet."""

    vocode: Callable[[], np.ndarray]
    """Makes its samples, float32[S] in -1 to 1. The pieces of a text may be vocoded in any order, and in parallel."""
    last: bool
    """Whether the text ends with it."""


Job = Iterator[Piece]
"""The steps of a request: each yields a piece."""


class ServedVoice:
    """Speaks requests, several at once: each has a copy of the synthesizer, which shares what is loaded.

    Raises:
        LockstepError: The checkpoint cannot be read, or vocoder or recordings do not fit it.
    """

    def __init__(self, source: Source, settings: ServerSettings, warn: Callable[[str], None]) -> None:
        """Load the voice; `warn` receives its possible faults."""
        self._settings = settings
        check_vocoder(settings.vocoder)
        self.source = source
        options = [settings.synthesis(nfe) for nfe in settings.nfe]
        self.mel_profile = self.source.voice.mel_profile
        self._recordings = _recordings(settings.speaker_wav, self.source, warn)
        self.capabilities = Capabilities(
            model=source.name,
            voices=list(self._recordings) or self.source.speakers or [_ONLY_VOICE],
            languages=self.source.languages,
            voice_languages=self.source.speaker_languages,
            nfe=list(settings.nfe),
            synthesis=options[0],
        )
        self._vocoder = make_vocoder(settings.vocoder, self.mel_profile, warn, voice=source.folder, clip=False)
        self.synthesizer = load_synthesizer(source, options[0])
        self._synthesizers: dict[str, Synthesizer] = {}
        self._adding = threading.Lock()
        for name in self.capabilities.voices:
            if name in self._recordings:
                self.synthesizer.set_voice(self._recordings[name])
            self._synthesizers[name] = copy(self.synthesizer)
        self._vocoder(np.zeros((16, self.mel_profile.mel_channels), np.float32))  # loads, as a first text does
        for language in self.capabilities.languages:
            with suppress(LockstepError):  # in languages whose numbers are not expanded
                encode_text("1", self.source.voice, language, "input")

    def speak(self, request: SpeechRequest, result: SpeechResult) -> Job:
        """Speak the text of a request piece by piece; `LockstepError` if nothing in it can be spoken."""
        assert request.voice is not None
        assert request.language is not None
        texts, warnings = encode_text(request.input, self.source.voice, request.language, "input")
        if (count := sum(len(text.words) for text in texts)) > (most := self._settings.max_letters):
            raise LockstepError("input", found=f"{count} characters to speak", expected=f"at most {most}")
        result.warnings += warnings
        synthesizer = copy(self._synthesizers[request.voice])
        synthesizer.options = request
        row = self.source.speakers.index(request.voice) if request.voice in self.source.speakers else 0
        speaker = LoadedVoice(synthesizer, self._vocoder, speaker=row, language=request.language)
        mels, pieces, last = speaker.mels(texts), list[MelPiece](), False
        while not last:
            piece = next(mels)
            pieces.append(piece.without_mel())
            last = piece.last
            if last and request.timestamps:
                result.times = times_json(speaker.time(texts, pieces), speaker.seconds(pieces))
            yield Piece(partial(speaker.vocode, piece.mel), last)

    def imitate(self, voice: str, recording: bytes) -> list[str]:
        """Add the voice of a sound file: doubts about it; `LockstepError` if it cannot be imitated."""
        if not self.source.takes_recording:
            raise LockstepError("recording", found=f"{self.capabilities.model} cannot imitate recordings")
        voices = self.capabilities.voices
        with self._adding:
            if voice in voices or len(voice) > _LONGEST_NAME or len(voices) >= _MOST_VOICES:
                expected = f"a new one of at most {_LONGEST_NAME} letters, and {_MOST_VOICES} voices in all"
                raise LockstepError("name of a voice", found=repr(voice[:_LONGEST_NAME]), expected=expected)
            synthesizer, doubts = copy(self.synthesizer), list[str]()
            synthesizer.set_voice(recorded_voice([read_sound(recording, "recording")], doubts.append))
            self._synthesizers[voice] = synthesizer
            voices.append(voice)
        return doubts


def _recordings(paths: tuple[Path, ...], source: Source, warn: Callable[[str], None]) -> dict[str, np.ndarray]:
    """Read the voice of every recording to imitate, by its file name without the suffix."""
    found: dict[str, np.ndarray] = {}
    for path, samples in zip(paths, read_recordings(paths, source), strict=True):
        if path.stem in found:
            raise LockstepError("--speaker-wav", found=f"two recordings called {path.stem}", expected="different names")
        doubts = list[str]()
        found[path.stem] = recorded_voice([samples], doubts.append)
        for doubt in doubts:
            warn(f"{path}: {doubt}")
    return found
