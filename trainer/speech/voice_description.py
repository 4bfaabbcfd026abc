"""Voice description for synthesis, besides the weights: in every run folder, so that the cache may be deleted."""

import json
from dataclasses import replace
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from xtts.shared.audio.mel_profiles import MelProfile, mel_profile
from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.errors import LockstepError
from xtts.shared.text.pronunciation import Lexicon
from xtts.shared.text.tokenizer import Tokenizer


class Voice(BaseModel):
    """The `synthesis` entry of `run.json`, and the `voice` entry of `voice.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    profile: str
    """Name of the mel profile, see shared/audio/mel_profiles.py."""
    mel_mean: float
    """Statistics of the training split, natural-log magnitude."""
    mel_deviation: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    tokenizer: Tokenizer
    expand_numbers: bool
    """Whether numbers and abbreviations are expanded before the tokenizer."""
    trim_silence_db: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None
    """Trimming and loudness of the recordings, applied to references too."""
    loudness_lufs: Annotated[float, Field(ge=-70.0, le=0.0)] | None
    speakers: list[str]
    speaker_languages: dict[str, str]
    """The language that each speaker was recorded in, of a model of several languages."""
    shapes: Annotated[list[BucketShape], Field(min_length=1, max_length=100)]
    """Shapes from short to long, like the buckets of a cache."""

    @property
    def mel_profile(self) -> MelProfile:
        """The mel profile."""
        return mel_profile(self.profile)

    def with_lexicon(self, more: Lexicon) -> Self:
        """Return the voice with readings of words, which replace its own for the same words."""
        kept = {word: reading for word, reading in self.tokenizer.lexicon.items() if word.lower() not in more}
        return self.model_copy(update={"tokenizer": replace(self.tokenizer, lexicon={**kept, **more})})

    @property
    def languages(self) -> list[str]:
        """ISO codes of the voice's languages, in index order."""
        return list(self.tokenizer.languages)

    @property
    def most_tokens(self) -> int:
        """Tokens of the largest shape."""
        return max(shape.tokens for shape in self.shapes)


def check_voice(stored: object, location: str) -> Voice:
    """Parse a stored voice; `LockstepError` at `location` names the first wrong field."""
    try:
        voice = Voice.model_validate_json(json.dumps(stored))
        voice.mel_profile  # noqa: B018 - refuses a profile that this version does not have
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise LockstepError(f"{location}.{field}", found=str(first["msg"]).lower()) from None
    return voice
