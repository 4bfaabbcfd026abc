"""The source of a voice: a stored model, read without TensorFlow."""

import difflib
from dataclasses import dataclass
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.shared.model_config import ModelConfig
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.run.stored_model import StoredModel, open_model


@dataclass(frozen=True, kw_only=True)
class Source(StoredModel):
    """A stored model that can speak."""

    model: ModelConfig

    @property
    def takes_recording(self) -> bool:
        """Whether the voice is that of a reference recording; a graph alone has its voice inside."""
        return bool(self.model.voice_latents) and self.has_weights

    @property
    def speakers(self) -> list[str]:
        """Names of the speakers to choose from, empty for one voice or a model that takes recordings alone."""
        return self.voice.speakers if self.model.has_speaker_table else []

    @property
    def conditioning(self) -> list[str]:
        """Fields of `Conditioning` that the model reads, in signature order."""
        reads = {
            "speaker": len(self.speakers) > 1,
            "voice": self.model.voice_latents > 0,
            "language": len(self.voice.languages) > 1,
        }
        return [field for field, read in reads.items() if read]

    def speaker_number(self, name: str | None) -> int:
        """Row of a speaker in the model's table; without a name the first (most corpora have only one)."""
        speakers = self.speakers
        if name is None:
            return 0
        if self.takes_recording and not speakers:
            raise LockstepError(
                "--speaker",
                found=f"{self.checkpoint} takes its voice from a recording",
                fix="use --speaker-wav REF.wav",
            )
        if name not in speakers:
            near = difflib.get_close_matches(name, speakers, n=3, cutoff=0.0)
            expected = (
                f"one of {len(speakers)}, such as {', '.join(near)}" if near else "no --speaker: it has one voice"
            )
            raise LockstepError("--speaker", found=f"{name!r} is not in {self.checkpoint}", expected=expected)
        return speakers.index(name)

    def check_timing(self, options: SynthesisOptions) -> None:
        """`LockstepError` if two options decide the length."""
        if options.seconds is not None and options.speed != SynthesisOptions.speed:
            raise LockstepError("--seconds", found="together with --speed", expected="one of them")

    def language(self, code: str | None) -> str:
        """A language of the model; without a code the first (most corpora have only one)."""
        languages = self.languages
        if code is None:
            return languages[0]
        if code not in languages:
            found = f"{self.checkpoint} does not speak {code!r}"
            raise LockstepError("--language", found=found, expected=" or ".join(languages))
        return code


def open_source(path: Path) -> Source:
    """The voice of an exported folder, a run folder or one checkpoint; `LockstepError` if something is missing."""
    stored = open_model(path)
    return Source(checkpoint=stored.checkpoint, run=stored.run, voice=stored.voice, model=stored.config().model)
