"""Letters, signs and scripts of characters."""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

JOINERS = "\u200c\u200d"
"""Zero width non-joiner and joiner: invisible, but part of the spelling in Persian and in Indian scripts."""
_LETTER_LIKE = frozenset(JOINERS + "\u00b7")  # the dot of Catalan l-l
_SCRIPT_NAMES = {"CJK": "Chinese characters", "": "no script of its own"}


@lru_cache(maxsize=65_536)
def is_letter(character: str) -> bool:
    """Whether a character spells: a letter, a mark on a letter, or a joiner; not a digit, a sign or punctuation."""
    return unicodedata.category(character)[0] in "LM" or character in _LETTER_LIKE


@lru_cache(maxsize=65_536)
def is_sign(character: str) -> bool:
    """Whether a character separates words: not one that spells, not a digit, not one that is invisible in a word."""
    category = unicodedata.category(character)
    return not is_letter(character) and category[0] != "N" and category != "Cf"


@lru_cache(maxsize=65_536)
def script_of(character: str) -> str:
    """Return the first word of a letter's Unicode name, such as CYRILLIC; empty for marks and signs of all scripts."""
    name = unicodedata.name(character, "")
    first = name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]
    return "" if first in ("COMBINING", "MODIFIER", "ZERO", "MIDDLE", "") else first


def script_name(script: str) -> str:
    """Return the script's name for messages, such as `Cyrillic`."""
    return _SCRIPT_NAMES.get(script, script.capitalize())


def main_script(letters: Mapping[str, int]) -> str:
    """Return the script of most letters; empty without letters."""
    scripts = Counter[str]()
    for letter, count in letters.items():
        scripts[script_of(letter)] += count
    del scripts[""]
    return max(scripts, key=lambda script: (scripts[script], script), default="")
