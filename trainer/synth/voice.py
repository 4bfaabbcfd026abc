"""What synthesis has to know besides the weights: kept in every run folder, so that the cache may go."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from xtts.shared.cache_spec import MAX_FRAMES, MAX_TOKENS, TOKENIZER_FILE, CacheSpec
from xtts.shared.config import TextConfig
from xtts.shared.mel_profiles import MelProfile, mel_profile
from xtts.shared.text import Tokenizer, load_tokenizer

TokenCount = Annotated[int, Field(gt=0, le=MAX_TOKENS)]
FrameCount = Annotated[int, Field(gt=0, le=MAX_FRAMES)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class Symbols(_Part):
    """What `tokenizer.json` holds."""

    kind: str
    add_blank: bool
    symbols: Annotated[list[str], Field(min_length=1, max_length=2**20)]


class Shape(_Part):
    """One output bucket (L, T)."""

    tokens: TokenCount
    frames: FrameCount


class Voice(_Part):
    """The `synthesis` entry of `run.json`."""

    profile: str
    """Name of the mel profile, see shared/mel_profiles.py."""
    mel_mean: float
    """Of the training split, natural-log magnitude."""
    mel_deviation: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    tokenizer: Symbols
    expand_numbers: bool = False
    """Whether numbers and abbreviations are put into words first; runs of earlier versions do not say."""
    speakers: list[str]
    shapes: Annotated[list[Shape], Field(min_length=1, max_length=100)]

    @property
    def mel_profile(self) -> MelProfile:
        """The profile by name."""
        return mel_profile(self.profile)

    @property
    def symbol_table(self) -> Tokenizer:
        """Text to token ids."""
        return Tokenizer(
            kind=self.tokenizer.kind, symbols=tuple(self.tokenizer.symbols), add_blank=self.tokenizer.add_blank
        )

    @property
    def ladder(self) -> list[Shape]:
        """The shapes from small to large, without those that a shorter one makes useless."""
        best: list[Shape] = []
        for shape in sorted(self.shapes, key=lambda shape: (shape.frames, -shape.tokens)):
            if not best or shape.frames > best[-1].frames:
                best.append(shape)
        return best

    @property
    def most_tokens(self) -> int:
        """L of the shape that holds the longest text."""
        return max(shape.tokens for shape in self.ladder)


def synthesis_record(cache: Path, spec: CacheSpec) -> dict[str, Any]:
    """The voice that training on a cache will give, as JSON."""
    tokenizer = load_tokenizer(cache / TOKENIZER_FILE)
    voice = Voice(
        profile=spec.mel_profile.name,
        mel_mean=spec.statistics.mel_mean,
        mel_deviation=spec.statistics.mel_deviation,
        tokenizer=Symbols(kind=tokenizer.kind, add_blank=tokenizer.add_blank, symbols=list(tokenizer.symbols)),
        expand_numbers=TextConfig.model_validate(spec.features["text"]).expand_numbers,
        speakers=list(spec.speakers),
        shapes=[Shape(tokens=bucket.tokens, frames=bucket.frames) for bucket in spec.buckets],
    )
    return voice.model_dump(mode="json")
