"""Made-up sentences in several languages: how many, how long, in which order; the words are each language's own.

Sentence i depends on the language, the seed, i and the length limit only, so a longer list begins with the shorter one.
Lengths follow LJSpeech's. A fragment `{12|twelve}` is written the first way in the raw and the second in the normalised
text.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from xtts.precompute.sample.english import English
from xtts.precompute.sample.grammar import languages_with_a_grammar, load_grammar
from xtts.shared.errors import LockstepError

ENGLISH = "en"
SHORTEST_LIMIT_SECONDS = 1.0
_LONGEST_EXPECTED_SECONDS = 9.5

# Clip seconds at the tenths of LJSpeech's distribution, from the shortest to the longest.
_LENGTH_DECILES = (1.1, 3.4, 4.5, 5.4, 6.1, 6.8, 7.4, 8.1, 8.7, 9.4, 10.0)

_MARK = re.compile(r"\{([^|{}]*)\|([^|{}]*)\}")
_FIRST_LETTER = re.compile(r"^[¿¡]?.")


class Language(Protocol):
    """What sentences need to know of a language."""

    @property
    def version(self) -> int:
        """Of words, grammar and voice: raised whenever a seed gives another corpus."""

    @property
    def voice(self) -> str:
        """espeak-ng's voice of the language."""

    @property
    def attempts(self) -> int:
        """How often one sentence is composed before the limit is called exhausted."""

    def compose(self, rng: random.Random, seconds: float) -> str:
        """A sentence with marked fragments that takes about that long to say."""

    def expected_seconds(self, text: str) -> float:
        """About how long the voice takes to say a normalised text."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One transcript as it would be printed and as it is read out."""

    raw: str
    normalised: str


def language_named(code: str) -> Language:
    """Look up a language by its code; an unknown one is an error that names those there are."""
    others = languages_with_a_grammar()
    if code == ENGLISH:
        return English()
    if code in others:
        return load_grammar(code)
    raise LockstepError("language", found=repr(code), expected=f"one of {', '.join([ENGLISH, *others])}")


def sentences(seed: int, max_seconds: float | None = None, language: str = ENGLISH) -> Iterator[Sentence]:
    """Distinct sentences without end, each expected to be said within `max_seconds`."""
    speaker = language_named(language)
    longest = _LONGEST_EXPECTED_SECONDS
    if max_seconds is not None:
        if not max_seconds >= SHORTEST_LIMIT_SECONDS:
            raise LockstepError("max_seconds", found=f"{max_seconds}", expected=f"at least {SHORTEST_LIMIT_SECONDS}")
        longest = min(longest, max_seconds / 1.15)  # 1 in 30 takes over 1.15 times the expected
    shortest = min(_LENGTH_DECILES[0], 0.8 * longest)
    stream = f"{seed}" if language == ENGLISH else f"{language}/{seed}"
    seen: set[str] = set()
    while True:
        yield _new_sentence(speaker, random.Random(f"{stream}/{len(seen)}"), shortest, longest, seen)


def _new_sentence(
    language: Language, rng: random.Random, shortest: float, longest: float, seen: set[str]
) -> Sentence:  # fmt: skip
    for _ in range(language.attempts):
        marked = language.compose(rng, _draw_seconds(rng, shortest, longest))
        raw, normalised = (_MARK.sub(side, marked) for side in (r"\1", r"\2"))
        if normalised not in seen and 0.95 * shortest <= language.expected_seconds(normalised) <= longest:
            seen.add(normalised)
            return Sentence(raw=_capitalised(raw), normalised=_capitalised(normalised))
    raise LockstepError(
        "sample sentences", found=f"only {len(seen)} distinct ones are short enough", expected="one for each clip",
        fix="raise --max-seconds or lower --clips",
    )  # fmt: skip


def _capitalised(text: str) -> str:
    return _FIRST_LETTER.sub(lambda start: start[0].upper(), text)


def _draw_seconds(rng: random.Random, shortest: float, longest: float) -> float:
    """A length from LJSpeech's distribution, squeezed into the given range."""
    position = rng.random() * (len(_LENGTH_DECILES) - 1)
    low, high = _LENGTH_DECILES[int(position)], _LENGTH_DECILES[int(position) + 1]
    share = (low + (high - low) * (position % 1) - _LENGTH_DECILES[0]) / (_LENGTH_DECILES[-1] - _LENGTH_DECILES[0])
    return shortest + share * (longest - shortest)
