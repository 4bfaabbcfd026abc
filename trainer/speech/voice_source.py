"""The folder of an exported voice: which speakers and languages it offers, and the files that it speaks with."""

import difflib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xtts.shared.errors import LockstepError, read_json
from xtts.shared.languages import chosen_language
from xtts.trainer.speech.voice_description import Voice, check_voice

GRAPH_FILE, TOKENIZER_FILE, VOICE_FILE = "model.onnx", "tokenizer.json", "voice.json"
FORMAT_VERSION = 3
_ORIGIN = "a folder written by xtts-synth export"
VoiceFrom = Literal["table", "recording", "graph"]
"""Where the voice comes from: a table of speakers, a recording to imitate, or the graph, which has one inside."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a voice offers, as its folder, or the checkpoint that is to be exported, describes it."""

    folder: Path
    voice: Voice
    voice_from: VoiceFrom
    fixed_language: str | None = None
    """The language that a graph of several was fixed to."""

    @property
    def name(self) -> str:
        """Name of the folder, or of the run that it belongs to."""
        folder = self.folder.resolve()
        return folder.parent.name if (folder.parent / "run.json").is_file() else folder.name

    @property
    def takes_recording(self) -> bool:
        """Whether the voice comes from a reference recording."""
        return self.voice_from == "recording"

    @property
    def speakers(self) -> list[str]:
        """Names of the speakers to choose from, empty for one voice or a model that imitates recordings."""
        return self.voice.speakers if self.voice_from == "table" else []

    @property
    def languages(self) -> list[str]:
        """ISO codes of the languages that can be spoken."""
        return [self.fixed_language] if self.fixed_language else self.voice.languages

    @property
    def speaker_languages(self) -> dict[str, str]:
        """Language of each speaker, where it can be chosen."""
        spoken = self.languages
        return {name: code for name, code in self.voice.speaker_languages.items() if code in spoken}

    def speaker_row(self, name: str | None, language: str) -> int:
        """Row of a speaker in the model's table; without a name the first of the language, or else the first."""
        speakers = self.speakers
        if name is None:
            own = self.speaker_languages
            return next((row for row, speaker in enumerate(speakers) if own.get(speaker) == language), 0)
        if self.takes_recording:
            found = f"{self.folder} takes its voice from a recording"
            raise LockstepError("--speaker", found=found, fix="use --speaker-wav REF.wav")
        name = chosen_name(name, speakers)
        if name not in speakers:
            matches = difflib.get_close_matches(name, speakers, n=3, cutoff=0.0)
            similar = f"one of {len(speakers)}, such as {', '.join(matches)}"
            expected = similar if matches else "no --speaker: it has one voice"
            raise LockstepError("--speaker", found=f"{name!r} is not in {self.folder}", expected=expected)
        return speakers.index(name)

    def language(self, code: str | None, speaker: str | None = None) -> str:
        """Check a language code against the model's; without a code return the speaker's, or else the first."""
        languages = self.languages
        code = chosen_language(code, languages)
        if code is None:
            speaker = chosen_name(speaker, self.speakers) if speaker else next(iter(self.speakers), "")
            return self.speaker_languages.get(speaker, languages[0])
        if code not in languages:
            found = f"{self.folder} does not speak {code!r}"
            raise LockstepError("--language", found=found, expected=" or ".join(languages))
        return code


def chosen_name(name: str, names: Collection[str]) -> str:
    """Return the one of `names` that has the same letters, large or small; others unchanged."""
    known = {each.casefold(): each for each in names} | {each: each for each in names}
    return known.get(name) or known.get(name.strip().casefold(), name)


def is_voice_folder(path: Path) -> bool:
    """Whether a path is an exported folder, even one with files missing."""
    return (path / GRAPH_FILE).is_file() or (path / VOICE_FILE).is_file()


def open_source(folder: Path) -> Source:
    """Open an exported voice.

    Raises:
        LockstepError: It is another folder, or something in it is missing or wrong.
    """
    path = folder / VOICE_FILE
    if not is_voice_folder(folder):
        run = "; a run has its voice in RUN/voice" if (folder / "run.json").is_file() else ""
        raise LockstepError(
            str(folder), found="no exported voice", expected=f"a folder with {VOICE_FILE} and {GRAPH_FILE}{run}",
            fix=f"xtts-synth export --ckpt {folder} --format onnx OUT",
        )
    fields = read_json(path, _ORIGIN, FORMAT_VERSION)
    entry, language, voice_from = fields.get("voice"), fields.get("language"), fields.get("voice_from")
    if not isinstance(entry, dict) or voice_from not in ("table", "recording", "graph"):
        raise LockstepError(str(path), found="no `voice` entry, or no `voice_from`", expected=_ORIGIN)
    voice = check_voice({**entry, "tokenizer": read_json(folder / TOKENIZER_FILE, _ORIGIN)}, str(path))
    if language not in (None, *voice.languages):
        raise LockstepError(str(path), found=f"language {language!r}", expected=" or ".join(voice.languages))
    return Source(folder=folder, voice=voice, voice_from=voice_from, fixed_language=language)


def write_source(folder: Path, source: Source) -> None:
    """Write the description of a voice, all but its tokenizer, into the folder of its export."""
    fields = {
        "format_version": FORMAT_VERSION, "voice": source.voice.model_dump(mode="json", exclude={"tokenizer"}),
        "language": source.fixed_language, "voice_from": source.voice_from,
    }
    (folder / VOICE_FILE).write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
