"""Letters, signs and scripts of characters."""

import re
import unicodedata
from functools import lru_cache

from xtts.shared.languages import find_language

JOINERS = "\u200c\u200d"
"""Zero width non-joiner and joiner: invisible, but part of the spelling in Persian and in Indian scripts."""
_LETTER_LIKE = frozenset(JOINERS + "\u00b7")  # the dot of Catalan l-l

_FRACTION = re.compile(r"(\d?)([\u00bc-\u00be\u2150-\u215e])")
_RAISED = "\u207b?[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+"
_POWER = re.compile(rf"(?:(?<=[0-9)])|(?<=\b[abcnrtxyz])|(?<=\bmc)|(?<=[0-9][x-z])|(?<=π[a-z])){_RAISED}")
"""The exponent of a number, of a variable, or of light's speed in `mc²`: not that of a unit, as in `m²`."""
_NOTE = re.compile(rf"(?:(?<=[^\W\d_]{{3}})|(?<=[.,;:!?)\"\u201d\u201c])){_RAISED}(?!\w)")
"""The mark of a footnote."""
_SUBSCRIPTS = {0x2080 + digit: str(digit) for digit in range(10)}
_PRESENTED = re.compile("[\ufb50-\ufdff\ufe70-\ufefc]+")
"""Arabic letters in the forms of their places in words, and ligatures."""
_PERSIAN = str.maketrans("يىكإ", "ییکا")
_WITH_PERSIAN_LETTERS = frozenset({"fa", "ur", "ckb"})


def plain_letters(text: str, language: str) -> str:
    """Return a text of the Arabic script with one letter for its variants, without signs that stretch or join letters.

    Persian, Urdu and Central Kurdish have letters of their own for two of Arabic keyboards.
    """
    if text.isascii() or "ARABIC" not in find_language(language).scripts:
        return text
    text = _PRESENTED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = text.replace("\u0640", "").replace("\u200d", "")
    if language in _WITH_PERSIAN_LETTERS:
        text = text.translate(_PERSIAN)
    return text.replace("\u064b\u0627", "\u0627\u064b") if language == "fa" else text


def separate_fractions(text: str) -> str:
    """Turn `1½` into `1 1/2` and `5²` into `5^2`, which NFKC would join to 11/2 and 52; drop the marks of notes."""
    text = _NOTE.sub("", text.translate(_SUBSCRIPTS))
    text = _POWER.sub(lambda match: "^" + "".join(str(unicodedata.digit(c, "-")) for c in match[0]), text)
    return _FRACTION.sub(lambda match: (match[1] and match[1] + " ") + unicodedata.normalize("NFKC", match[2]), text)


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
