# ruff: noqa: RUF001 - punctuation of other scripts looks like ours
"""Sentences from a grammar in a file of `languages/`, one file a language.

A file holds rules `name: alternative; alternative`, which may run over several lines. In an alternative, `<name>`
stands for any alternative of that rule and `<name?>` for one or nothing; of words with forms, written `Haus/Hauses`,
`<name>` takes the first form and `<name.2>` the second. Rules before the first line `---` are common; below, each part
is a subject whose words go together. `short` is a few words, `sentence` any length; `{12|zwölf}` is written the first
way and said the second. Settings: `voice`, `version`, and the fitted `seconds` of both ends, a letter and a pause.
"""

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

_FOLDER = files("xtts.precompute.sample") / "languages"
_REFERENCE = re.compile(r"<([^<>.?]+)(?:\.(\d))?(\??)>")
_PAUSES = re.compile("[,;:،؛，；：]|[.!?।؟。！？](?=.)")
_SPACES = re.compile(r"^ +| +(?=[ ,.?!،؟।]|$)")
_AFTER_A_STOP = re.compile("(?<=[.!?] )[¿¡]?.")
_SHORT_SECONDS = 2.2
_DRAWS = 30  # of which the one is taken whose length comes nearest
_NEAR = 0.05  # a share of the length that is near enough

Rules = dict[str, list[str]]


def languages_with_a_grammar() -> list[str]:
    """Codes of the languages that have a file."""
    return sorted(entry.name.removesuffix(".txt") for entry in _FOLDER.iterdir() if entry.name.endswith(".txt"))


@lru_cache
def load_grammar(code: str) -> "Grammar":
    """The grammar of a language that has a file."""
    common, *subjects = map(_read_rules, (_FOLDER / f"{code}.txt").read_text(encoding="utf-8").split("\n---\n"))
    (voice,), (version,), (seconds,) = (common.pop(name) for name in ("voice", "version", "seconds"))
    first, letter, pause = map(float, seconds.split())
    return Grammar(
        voice=voice, version=int(version), subjects=[{**common, **subject} for subject in subjects],
        first_seconds=first, letter_seconds=letter, pause_seconds=pause,
    )  # fmt: skip


def _read_rules(text: str) -> Rules:
    rules = re.findall(r"^([^:\n]+): (.*?)(?=\n[^:\n]+: |\s*\Z)", text, re.DOTALL | re.MULTILINE)
    return {name: re.split(r";\s+", body.replace("\n", " ").strip()) for name, body in rules}


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """Rules of a language for each subject, and how long its voice takes."""

    attempts = 2000  # of _DRAWS each
    voice: str
    version: int
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
