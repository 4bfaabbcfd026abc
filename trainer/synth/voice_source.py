"""Where a voice comes from: a checkpoint and the run folder around it; read without TensorFlow."""

import difflib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from xtts.shared.config import ModelConfig
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.voice_description import Voice
from xtts.trainer.run.checkpoint import find_checkpoint, load_arrays
from xtts.trainer.run.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class Source:
    """A checkpoint that can speak."""

    checkpoint: Path
    run: RunFolder
    model: ModelConfig
    voice: Voice

    def averages(self) -> dict[str, np.ndarray]:
        """Averaged weights by the path of the weight."""
        arrays = load_arrays(self.checkpoint)
        return {name.removeprefix("averages/"): arrays[name] for name in arrays if name.startswith("averages/")}

    @property
    def speaker_table(self) -> bool:
        """Whether the model tells voices apart by the speaker's number."""
        return len(self.voice.speakers) > 1 and not self.model.voice_latents

    def speaker_number(self, name: str | None) -> int:
        """Place of a speaker in the model's table; without a name the first, which is the only one of most corpora."""
        speakers = self.voice.speakers
        if name is None:
            return 0
        if self.model.voice_latents:
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


def open_source(path: Path) -> Source:
    """The voice of a run folder or of one checkpoint; a `LockstepError` says what is missing."""
    checkpoint = find_checkpoint(path)
    run = RunFolder.of_checkpoint(checkpoint)
    return Source(checkpoint=checkpoint, run=run, model=load_config(str(run.config_file)).model, voice=_voice(run))


def _voice(run: RunFolder) -> Voice:
    try:
        fields = json.loads(run.run_file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LockstepError(str(run.run_file), found=f"cannot be read ({error})") from None
    described = fields.get("synthesis") if isinstance(fields, dict) else None
    if described is None:
        raise LockstepError(
            str(run.run_file),
            found="no `synthesis` entry, as runs of earlier versions have it",
            fix=f"a few more steps write it: xtts-train --resume {run.path} --steps N",
        )
    try:
        voice = Voice.model_validate(described)
        voice.mel_profile  # noqa: B018 - refuses a profile that this version does not have
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{run.run_file} synthesis.{'.'.join(map(str, first['loc']))}"
        raise LockstepError(where, found=str(first["msg"]).lower()) from None
    return voice
