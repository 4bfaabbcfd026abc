# ruff: noqa: RUF001 - punctuation of other scripts looks like ours
"""Made-up sentences in several languages, from a grammar in a file of `languages/`, one file a language.

A file holds rules `name: alternative; alternative`, which may run over several lines. In an alternative, `<name>`
stands for any alternative of that rule and `<name?>` for one or nothing; of words with forms, written `Haus/Hauses`,
`<name>` takes the first form and `<name.2>` the second. Rules before the first line `---` are common; below, each part
is a subject whose words go together. `short` is a few words, `sentence` any length; `{12|zwölf}` is written the first
way in the raw and the second in the normalised text. Settings: `voice`, and the fitted `seconds` of both ends, a letter
and a pause.

SampleSentence i depends on the language, the seed and i only. Lengths follow LJSpeech's.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from xtts.shared.errors import LockstepError

ENGLISH = "en"
_LONGEST_EXPECTED_SECONDS = 9.5
_SHORT_SECONDS = 2.2
_ATTEMPTS = 2000  # at one sentence, of _DRAWS each, before the limit is called exhausted
_DRAWS = 30  # of which the one is taken whose length comes nearest
_NEAR = 0.05  # a share of the length that is near enough

# Clip seconds at the tenths of LJSpeech's distribution, from the shortest to the longest.
_LENGTH_DECILES = (1.1, 3.4, 4.5, 5.4, 6.1, 6.8, 7.4, 8.1, 8.7, 9.4, 10.0)

_FOLDER = files("xtts.precompute.sample") / "languages"
_REFERENCE = re.compile(r"<([^<>.?]+)(?:\.(\d))?(\??)>")
_PAUSES = re.compile("[,;:،؛，；：]|[.!?।؟。！？](?=.)")
_SPACES = re.compile(r"^ +| +(?=[ ,.?!،؟।]|$)")
_AFTER_A_STOP = re.compile("(?<=[.!?] )[¿¡]?.")
_MARK = re.compile(r"\{([^|{}]*)\|([^|{}]*)\}")
_FIRST_LETTER = re.compile(r"^[¿¡]?.")

Rules = dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class SampleSentence:
    """One transcript as it would be printed and as it is read out."""

    raw: str
    normalised: str


def sentences(seed: int, language: str = ENGLISH) -> Iterator[SampleSentence]:
    """Distinct sentences without end."""
    grammar = load_grammar(language)
    seen: set[str] = set()
    while True:
        yield _new_sentence(grammar, random.Random(f"{language}/{seed}/{len(seen)}"), seen)


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """Rules of a language for each subject, espeak-ng's voice of it, and how long that voice takes."""

    voice: str
    subjects: list[Rules]
    first_seconds: float
    letter_seconds: float
    pause_seconds: float

    def expected_seconds(self, text: str) -> float:
        """About how long the voice takes to say a normalised text."""
        pauses = len(_PAUSES.findall(text))
        return self.first_seconds + self.letter_seconds * len(text) + self.pause_seconds * pauses

    def compose(self, rng: random.Random, seconds: float) -> str:
        """A sentence with marked fragments that takes about that long to say."""
        start = "<short>" if seconds < _SHORT_SECONDS else "<sentence>"
        nearest, smallest = "", float("inf")
        for _ in range(_DRAWS):
            text = _Draw(rng, rng.choice(self.subjects)).expand(start)
            text = _AFTER_A_STOP.sub(lambda found: found[0].upper(), _SPACES.sub("", text))
            distance = abs(self.expected_seconds(text) - seconds)
            if distance < smallest:
                nearest, smallest = text, distance
            if distance < _NEAR * seconds:
                break
        return nearest


@lru_cache
def load_grammar(code: str) -> Grammar:
    """The grammar of a language; an unknown code is an error that names those there are."""
    codes = sorted(entry.name.removesuffix(".txt") for entry in _FOLDER.iterdir() if entry.name.endswith(".txt"))
    if code not in codes:
        raise LockstepError("language", found=repr(code), expected=f"one of {', '.join(codes)}")
    common, *subjects = map(_read_rules, (_FOLDER / f"{code}.txt").read_text(encoding="utf-8").split("\n---\n"))
    (voice,), (seconds,) = (common.pop(name) for name in ("voice", "seconds"))
    first, letter, pause = map(float, seconds.split())
    return Grammar(
        voice=voice, subjects=[{**common, **subject} for subject in subjects],
        first_seconds=first, letter_seconds=letter, pause_seconds=pause,
    )  # fmt: skip


def _read_rules(text: str) -> Rules:
    rules = re.findall(r"^([^:\n]+): (.*?)(?=\n[^:\n]+: |\s*\Z)", text, re.DOTALL | re.MULTILINE)
    return {name: re.split(r";\s+", body.replace("\n", " ").strip()) for name, body in rules}


class _Draw:
    """One sentence being drawn; alternatives drawn before are mostly avoided."""

    def __init__(self, rng: random.Random, rules: Rules) -> None:
        self.rng = rng
        self.rules = rules
        self.used: set[str] = set()

    def expand(self, text: str) -> str:
        """Replace every reference in `text`."""
        return _REFERENCE.sub(self._reference, text)

    def _reference(self, found: "re.Match[str]") -> str:
        name, form, optional = found.groups()
        if optional and self.rng.random() < 0.5:
            return ""
        item = self._item(name)
        return self.expand(item.split("/")[int(form or 1) - 1])

    def _item(self, name: str) -> str:
        item = self.rng.choice(self.rules[name])
        for _ in range(5):
            if item in self.used:
                item = self.rng.choice(self.rules[name])
        if "/" in item or "<" not in item:
            self.used.add(item)
        return item


def _new_sentence(grammar: Grammar, rng: random.Random, seen: set[str]) -> SampleSentence:
    shortest, longest = 0.95 * _LENGTH_DECILES[0], _LONGEST_EXPECTED_SECONDS
    for _ in range(_ATTEMPTS):
        marked = grammar.compose(rng, _draw_seconds(rng))
        raw, normalised = (_MARK.sub(side, marked) for side in (r"\1", r"\2"))
        if normalised not in seen and shortest <= grammar.expected_seconds(normalised) <= longest:
            seen.add(normalised)
            return SampleSentence(raw=_capitalised(raw), normalised=_capitalised(normalised))
    raise LockstepError(
        "sample sentences", found=f"only {len(seen)} distinct ones", expected="one for each clip", fix="lower --clips"
    )


def _capitalised(text: str) -> str:
    return _FIRST_LETTER.sub(lambda start: start[0].upper(), text)


def _draw_seconds(rng: random.Random) -> float:
    """A length from LJSpeech's distribution, squeezed below `_LONGEST_EXPECTED_SECONDS`."""
    shortest = _LENGTH_DECILES[0]
    position = rng.random() * (len(_LENGTH_DECILES) - 1)
    low, high = _LENGTH_DECILES[int(position)], _LENGTH_DECILES[int(position) + 1]
    share = (low + (high - low) * (position % 1) - shortest) / (_LENGTH_DECILES[-1] - shortest)
    return shortest + share * (_LONGEST_EXPECTED_SECONDS - shortest)
