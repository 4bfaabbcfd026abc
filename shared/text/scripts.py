"""What is a letter, of which script, and which language a corpus' letters speak for."""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from xtts.shared.text.languages import LANGUAGES, Language

JOINERS = "\u200c\u200d"
"""Zero width non-joiner and joiner: invisible, but part of the spelling in Persian and in Indian scripts."""
_LETTER_LIKE = frozenset(JOINERS + "\u00b7")  # the dot of Catalan l-l
_SHOWN = {"CJK": "Chinese characters", "": "no script of its own"}


@lru_cache(maxsize=65_536)
def is_letter(character: str) -> bool:
    """Whether a character spells: a letter, a mark on one, or a joiner; digits, signs and punctuation do not."""
    return unicodedata.category(character)[0] in "LM" or character in _LETTER_LIKE


@lru_cache(maxsize=65_536)
def script_of(character: str) -> str:
    """First word of the letter's Unicode name, such as CYRILLIC; empty for marks and signs of all scripts."""
    name = unicodedata.name(character, "")
    first = name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]
    return "" if first in ("COMBINING", "MODIFIER", "ZERO", "MIDDLE", "") else first


def script_name(script: str) -> str:
    """As it is shown to people: `Cyrillic`."""
    return _SHOWN.get(script, script.capitalize())


def main_script(letters: Mapping[str, int]) -> str:
    """The script of most letters; empty where there are none."""
    scripts = Counter[str]()
    for letter, count in letters.items():
        scripts[script_of(letter)] += count
    del scripts[""]
    return max(scripts, key=lambda script: (scripts[script], script), default="")


def suggest_language(letters: Mapping[str, int]) -> Language | None:
    """The language that fits best, from small letters and how often each occurs."""
    script = main_script(letters)
    if script == "CJK" and any(script_of(letter) in ("HIRAGANA", "KATAKANA") for letter in letters):
        return LANGUAGES["ja"]
    candidates = [language for language in LANGUAGES.values() if script in language.scripts]
    if not candidates:
        return None
    own = {
        letter: count
        for letter, count in letters.items()
        if script_of(letter) == script and not ("a" <= letter <= "z")
    }  # fmt: skip
    if script == "LATIN" and not own:
        return LANGUAGES["en"]
    return max(candidates, key=lambda language: _fit(language, own))


def _fit(language: Language, own: Mapping[str, int]) -> tuple[float, int]:
    """How well the letters fit: most of them covered; among equals, the fewest letters that do not occur."""
    total = sum(own.values()) or 1
    covered = sum(count for letter, count in own.items() if letter in language.letters)
    absent = sum(own.get(letter, 0) * 2000 < total for letter in language.letters)
    return round(covered / total, 2) if language.letters else 0.0, -absent
