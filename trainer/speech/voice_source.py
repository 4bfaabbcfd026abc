"""The source of a voice: a stored model and the recordings that it imitates, read without TensorFlow."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr

from xtts.shared.audio.decode import AudioProblem, decode, read_header
from xtts.shared.audio.other_formats import OTHER_SUFFIXES, decode_by_ffmpeg
from xtts.shared.audio.speaker_encoder import RATE
from xtts.shared.audio.trim_and_loudness import refuse_silence
from xtts.shared.errors import LockstepError
from xtts.shared.languages import chosen_language
from xtts.shared.model_config import ModelConfig
from xtts.trainer.stored.checkpoint import ACOUSTIC
from xtts.trainer.stored.stored_model import StoredModel, open_model
from xtts.trainer.system.onnx_file import read_file

_OPTION = "--speaker-wav"
_SHORTEST_SECONDS = 2.0
"""Shortest reference: a word or two do not characterise a voice."""
_LONGEST_SECONDS = 120.0
"""Longest reference: its mel takes a megabyte a second, and a compressed file of 200 KB may last for hours."""
_SILENT_PEAK = 1e-3
"""Lowest peak of a recording with speech, -60 dB: below it there is hum and noise."""


@dataclass(frozen=True, kw_only=True)
class Source(StoredModel):
    """A stored model that can speak."""

    model: ModelConfig

    @property
    def takes_recording(self) -> bool:
        """Whether the voice comes from a reference recording; a graph alone has its voice inside."""
        return self.model.voice_from == "recording" and self.has_weights

    @property
    def speakers(self) -> list[str]:
        """Names of the speakers to choose from, empty for one voice or a model that only takes recordings."""
        return self.voice.speakers if self.model.voice_from == "table" else []

    @property
    def speaker_languages(self) -> dict[str, str]:
        """Language of each speaker, where it can be chosen."""
        spoken = self.languages
        return {name: code for name, code in self.voice.speaker_languages.items() if code in spoken}

    @property
    def conditioning(self) -> list[str]:
        """Fields of `Conditioning` that the model reads, in signature order."""
        fields = {
            "speaker": len(self.speakers) > 1,
            "voice": self.model.voice_from == "recording",
            "language": len(self.voice.languages) > 1,
        }
        return [field for field, is_read in fields.items() if is_read]

    def speaker_row(self, name: str | None, language: str) -> int:
        """Row of a speaker in the model's table; without a name the first of the language, or else the first."""
        speakers = self.speakers
        if name is None:
            own = self.speaker_languages
            return next((row for row, speaker in enumerate(speakers) if own.get(speaker) == language), 0)
        if self.takes_recording and not speakers:
            found = f"{self.checkpoint} takes its voice from a recording"
            raise LockstepError("--speaker", found=found, fix=f"use {_OPTION} REF.wav")
        name = chosen_name(name, speakers)
        if name not in speakers:
            matches = difflib.get_close_matches(name, speakers, n=3, cutoff=0.0)
            similar = f"one of {len(speakers)}, such as {', '.join(matches)}"
            expected = similar if matches else "no --speaker: it has one voice"
            raise LockstepError("--speaker", found=f"{name!r} is not in {self.checkpoint}", expected=expected)
        return speakers.index(name)

    def language(self, code: str | None, speaker: str | None = None) -> str:
        """Check a language code against the model's; without a code return the speaker's, or else the first."""
        languages = self.languages
        code = chosen_language(code, languages)
        if code is None:
            speaker = chosen_name(speaker, self.speakers) if speaker else next(iter(self.speakers), "")
            return self.speaker_languages.get(speaker, languages[0])
        if code not in languages:
            found = f"{self.checkpoint} does not speak {code!r}"
            raise LockstepError("--language", found=found, expected=" or ".join(languages))
        return code


def chosen_name(name: str, names: Collection[str]) -> str:
    """Return the one of `names` that has the same letters, large or small; others unchanged."""
    known = {each.casefold(): each for each in names} | {each: each for each in names}
    return known.get(name) or known.get(name.strip().casefold(), name)


def open_source(path: Path) -> Source:
    """Open the voice of an exported folder, a run folder or a checkpoint; `LockstepError` if something is missing."""
    stored = open_model(path)
    stored.check_kind(ACOUSTIC, fix="give --ckpt a voice; xtts-synth export writes a vocoder as a file for --vocoder")
    return Source(**vars(stored), model=stored.config().model)


def read_recordings(paths: Sequence[Path], source: Source) -> list[np.ndarray]:
    """Read the recordings to imitate, float32[S] each at `RATE`; none for a model that imitates none."""
    if not source.takes_recording:
        if paths:
            if not source.has_weights:
                raise LockstepError(_OPTION, found=f"the graph of {source.checkpoint} has its voice inside")
            raise LockstepError(
                _OPTION, found=f"{source.checkpoint} has the voices of its corpus and cannot imitate a recording",
                fix="train with --set model.voice_from=recording, or leave the option out",
            )  # fmt: skip
        return []
    if not paths:
        raise LockstepError(
            _OPTION, found="missing", expected=f"a recording of the voice that {source.checkpoint} is to speak with",
            fix=f"add {_OPTION} REF.wav, {_SHORTEST_SECONDS:g} to 10 s of one speaker",
        )  # fmt: skip
    return [
        read_recording(read_file(path, _OPTION), f"{_OPTION} {path}", path.suffix.lower() in OTHER_SUFFIXES)
        for path in paths
    ]


def read_recording(data: bytes, location: str, by_ffmpeg: bool = False) -> np.ndarray:
    """Read a sound file to imitate: float32[S] at `RATE`.

    Raises:
        LockstepError: At `location`, if it is not two seconds of a voice.
    """
    try:
        if by_ffmpeg:
            samples = soxr.resample(*decode_by_ffmpeg(data, location, most_seconds=_LONGEST_SECONDS), RATE)
        else:
            header = read_header(data)
            _check_seconds(header.samples / header.rate, location)  # before it is decoded
            samples = decode(data, rate=RATE)
        refuse_silence(samples)
    except AudioProblem as problem:
        raise LockstepError(location, found=str(problem), expected="a recording of one speaker") from None
    if not np.isfinite(samples).all():
        raise LockstepError(location, found="samples that are not finite numbers")
    _check_seconds(len(samples) / RATE, location)
    peak = float(np.abs(samples).max())
    if peak < _SILENT_PEAK:
        raise LockstepError(location, found=f"silence (a peak of {20 * np.log10(peak):.0f} dB)", expected="a voice")
    return np.asarray(samples)


def _check_seconds(seconds: float, location: str) -> None:
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        expected = f"{_SHORTEST_SECONDS:g} to {_LONGEST_SECONDS:g} s of one speaker"
        raise LockstepError(location, found=f"{seconds:,.2f} s of sound", expected=expected)
