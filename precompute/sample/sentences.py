# ruff: noqa: RUF001 - punctuation of other scripts looks like ours
"""Generating sentences in several languages from the grammars in `languages/`, one file for each language.

A file holds rules `name: alternative; alternative`, which may run over several lines. In an alternative, `<name>`
stands for any alternative of that rule and `<name?>` for one or nothing; for words with forms, written `Haus/Hauses`,
`<name>` stands for the first form and `<name.2>` for the second. Rules before the first line `---` are common to all
subjects; each section below holds a subject, whose words go together. `short` is a few words, `sentence` has any
length; `{12|zwölf}` is the first form in the raw text and the second in the normalised text. Settings: `voice`, and
`seconds`, fitted to it: those of both ends together, of a letter and of a pause.

Sentence i depends only on the language, the seed and i. Lengths follow LJSpeech's.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from xtts.shared.errors import LockstepError

ENGLISH = "en"
_LONGEST_EXPECTED_SECONDS = 9.5
_SHORT_SECONDS = 2.2
_ATTEMPTS = 2000  # to compose a new sentence, before the grammar counts as exhausted
_DRAWS = 30  # for each attempt, which keeps the draw nearest to the wanted length
_NEAR = 0.05  # relative difference in length at which drawing stops

# Deciles of LJSpeech's clip lengths in seconds, from the shortest to the longest clip.
_LENGTH_DECILES = (1.1, 3.4, 4.5, 5.4, 6.1, 6.8, 7.4, 8.1, 8.7, 9.4, 10.0)

_FOLDER = files("xtts.precompute.sample") / "languages"
_REFERENCE = re.compile(r"<([^<>.?]+)(?:\.(\d))?(\??)>")
_PAUSES = re.compile("[,;:،؛，；：]|[.!?।؟。！？](?=.)")
_SPACES = re.compile(r"^ +| +(?=[ ,.?!،؟।]|$)")
_AFTER_A_STOP = re.compile("(?<=[.!?] )[¿¡]?.")
_MARK = re.compile(r"\{([^|{}]*)\|([^|{}]*)\}")
_FIRST_LETTER = re.compile(r"^[¿¡]?.")

Rules = dict[str, list[str]]


class SampleSentence(NamedTuple):
    """A sentence as printed and as read out."""

    raw: str
    normalised: str


def sentences(seed: int, language: str = ENGLISH) -> Iterator[SampleSentence]:
    """Yield distinct sentences without end."""
    grammar = load_grammar(language)
    seen: set[str] = set()
    while True:
        yield _new_sentence(grammar, random.Random(f"{language}/{seed}/{len(seen)}"), seen)


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The rules of a language for each subject, its espeak-ng voice, and the durations of that voice."""

    voice: str
    subjects: list[Rules]
    first_seconds: float
    letter_seconds: float
    pause_seconds: float

    def expected_seconds(self, text: str) -> float:
        """Estimate how many seconds the voice takes to speak a normalised text."""
        pauses = len(_PAUSES.findall(text))
        return self.first_seconds + self.letter_seconds * len(text) + self.pause_seconds * pauses

    def compose(self, rng: random.Random, seconds: float) -> str:
        """Return a sentence of about `seconds`, with the marks `{raw|normalised}`."""
        start = "<short>" if seconds < _SHORT_SECONDS else "<sentence>"
        nearest, smallest = "", float("inf")
        for _ in range(_DRAWS):
            text = _expanded(start, rng, rng.choice(self.subjects))
            text = _AFTER_A_STOP.sub(lambda match: match[0].upper(), _SPACES.sub("", text))
            distance = abs(self.expected_seconds(text) - seconds)
            if distance < smallest:
                nearest, smallest = text, distance
            if distance < _NEAR * seconds:
                break
        return nearest


@lru_cache
def load_grammar(code: str) -> Grammar:
    """Return the grammar of a language; raise a `LockstepError` that lists the languages if there is none."""
    codes = sorted(entry.name.removesuffix(".txt") for entry in _FOLDER.iterdir() if entry.name.endswith(".txt"))
    if code not in codes:
        raise LockstepError("language", found=repr(code), expected=f"one of {', '.join(codes)}")
    common, *subjects = map(_read_rules, (_FOLDER / f"{code}.txt").read_text(encoding="utf-8").split("\n---\n"))
    (voice,), (seconds,) = (common.pop(name) for name in ("voice", "seconds"))
    first, letter, pause = map(float, seconds.split())
    return Grammar(
        voice=voice, subjects=[{**common, **subject} for subject in subjects],
        first_seconds=first, letter_seconds=letter, pause_seconds=pause,
    )


def _read_rules(text: str) -> Rules:
    rules = re.findall(r"^([^:\n]+): (.*?)(?=\n[^:\n]+: |\s*\Z)", text, re.DOTALL | re.MULTILINE)
    return {name: re.split(r";\s+", body.replace("\n", " ").strip()) for name, body in rules}


def _expanded(start: str, rng: random.Random, rules: Rules) -> str:
    """Replace every reference by a random alternative, to the end; those used before in it are mostly avoided."""
    used = set[str]()

    def alternative(match: "re.Match[str]") -> str:
        name, form, optional = match.groups()
        if optional and rng.random() < 0.5:
            return ""
        chosen = rng.choice(rules[name])
        for _ in range(5):
            if chosen in used:
                chosen = rng.choice(rules[name])
        if "/" in chosen or "<" not in chosen:
            used.add(chosen)
        return _REFERENCE.sub(alternative, chosen.split("/")[int(form or 1) - 1])

    return _REFERENCE.sub(alternative, start)


def _new_sentence(grammar: Grammar, rng: random.Random, seen: set[str]) -> SampleSentence:
    shortest, longest = 0.95 * _LENGTH_DECILES[0], _LONGEST_EXPECTED_SECONDS
    for _ in range(_ATTEMPTS):
        marked = grammar.compose(rng, _draw_seconds(rng))
        raw, normalised = (_MARK.sub(side, marked) for side in (r"\1", r"\2"))
        if normalised not in seen and shortest <= grammar.expected_seconds(normalised) <= longest:
            seen.add(normalised)
            return SampleSentence(raw=_capitalised(raw), normalised=_capitalised(normalised))
    problem, fix = f"only {len(seen)} distinct ones", "lower --clips"
    raise LockstepError("sample sentences", found=problem, expected="one for each clip", fix=fix)


def _capitalised(text: str) -> str:
    return _FIRST_LETTER.sub(lambda match: match[0].upper(), text)


def _draw_seconds(rng: random.Random) -> float:
    """Draw a length from LJSpeech's distribution, rescaled to end at `_LONGEST_EXPECTED_SECONDS`."""
    shortest = _LENGTH_DECILES[0]
    position = rng.random() * (len(_LENGTH_DECILES) - 1)
    low, high = _LENGTH_DECILES[int(position)], _LENGTH_DECILES[int(position) + 1]
    share = (low + (high - low) * (position % 1) - shortest) / (_LENGTH_DECILES[-1] - shortest)
    return shortest + share * (_LONGEST_EXPECTED_SECONDS - shortest)
