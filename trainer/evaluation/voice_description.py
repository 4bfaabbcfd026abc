"""What synthesis needs besides the weights: stored in every run folder, so that the cache may be deleted."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from xtts.shared.audio.mel_profiles import MelProfile, mel_profile
from xtts.shared.cache.cache_spec import MAX_FRAMES, MAX_TOKENS, CacheSpec
from xtts.shared.errors import LockstepError
from xtts.shared.text.bpe import Merges, check_merges
from xtts.shared.text.pronunciation import Lexicon
from xtts.shared.text.tokenizer import SPECIAL, Tokenizer, load_tokenizer


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Symbols(_Part):
    """Contents of `tokenizer.json`."""

    kind: str
    add_blank: bool
    symbols: Annotated[list[str], Field(min_length=1, max_length=2**20)]
    languages: Annotated[list[str], Field(min_length=1, max_length=1000)]
    """ISO codes in index order."""
    merges: list[list[str]]
    """Merges of byte-pair encoding."""
    lexicon: dict[str, str] = {}
    """How words are read."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if tuple(self.symbols[: len(SPECIAL)]) != SPECIAL:
            raise ValueError(f"its symbols do not begin with {' '.join(SPECIAL)}: an earlier version made it")
        check_merges(tuple(self.symbols), self.pairs)
        return self

    @property
    def pairs(self) -> Merges:
        """The merges in the tokenizer's form."""
        return tuple((left, right) for left, right in self.merges)


class Shape(_Part):
    """One output bucket (L, T)."""

    tokens: Annotated[int, Field(gt=0, le=MAX_TOKENS)]
    frames: Annotated[int, Field(gt=0, le=MAX_FRAMES)]


class Voice(_Part):
    """The `synthesis` entry of `run.json`."""

    profile: str
    """Name of the mel profile, see shared/audio/mel_profiles.py."""
    mel_mean: float
    """Statistics of the training split, natural-log magnitude."""
    mel_deviation: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    tokenizer: Symbols
    expand_numbers: bool
    """Whether numbers and abbreviations are expanded first."""
    trim_silence_db: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None
    """Trimming and loudness of the recordings, which a reference needs too."""
    loudness_lufs: Annotated[float, Field(ge=-70.0, le=0.0)] | None
    speakers: list[str]
    shapes: Annotated[list[Shape], Field(min_length=1, max_length=100)]
    """From short to long, as the buckets of a cache are."""

    @property
    def mel_profile(self) -> MelProfile:
        """The profile by name."""
        return mel_profile(self.profile)

    @property
    def symbol_table(self) -> Tokenizer:
        """Text to token ids."""
        stored = self.tokenizer
        return Tokenizer(
            kind=stored.kind, symbols=tuple(stored.symbols), add_blank=stored.add_blank, merges=stored.pairs,
            languages=tuple(stored.languages), lexicon=stored.lexicon,
        )  # fmt: skip

    def with_lexicon(self, more: Lexicon) -> Self:
        """The voice that reads these words so, whatever it had for them."""
        kept = {word: reading for word, reading in self.tokenizer.lexicon.items() if word.lower() not in more}
        tokenizer = self.tokenizer.model_copy(update={"lexicon": {**kept, **more}})
        return self.model_copy(update={"tokenizer": tokenizer})

    @property
    def languages(self) -> list[str]:
        """ISO codes of the voice's languages, in index order."""
        return self.tokenizer.languages

    @property
    def most_tokens(self) -> int:
        """Tokens L of the shape for the longest text."""
        return max(shape.tokens for shape in self.shapes)


def check_voice(described: object, where: str) -> Voice:
    """A voice that was stored; `LockstepError` names what is wrong with it."""
    try:
        voice = Voice.model_validate(described)
        voice.mel_profile  # noqa: B018 - refuses a profile that this version does not have
    except ValidationError as error:
        first = error.errors()[0]
        raise LockstepError(f"{where}.{'.'.join(map(str, first['loc']))}", found=str(first["msg"]).lower()) from None
    return voice


def voice_of(cache: Path, spec: CacheSpec) -> Voice:
    """The voice that training on a cache produces."""
    tokenizer = load_tokenizer(cache / spec.tokenizer_file)
    audio = spec.features["audio"]
    return Voice(
        profile=spec.mel_profile.name,
        mel_mean=spec.statistics.mel_mean,
        mel_deviation=spec.statistics.mel_deviation,
        tokenizer=Symbols.model_validate(tokenizer.to_json()),
        expand_numbers=spec.features["text"]["expand_numbers"],
        trim_silence_db=audio["trim_silence_db"],
        loudness_lufs=audio["loudness_lufs"],
        speakers=list(spec.speakers),
        shapes=[Shape(tokens=bucket.tokens, frames=bucket.frames) for bucket in spec.buckets],
    )
