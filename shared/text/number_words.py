"""Numbers in words by `num2words` and CLDR.

No English word may get into a text of another language, but num2words mixes them in: every table here was checked.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Any

from xtts.shared.languages import MANDARIN
from xtts.shared.text.language_tables import load_table
from xtts.shared.text.scripts import separate_fractions

LANGUAGES = frozenset(
    "ar az be bn ca cs cy da de eo es fa fi fr he hu id is it kk kn ko lt lv nb nl no pl pt ro ru sk sl sv te tg th tr "
    "uk vi".split()
)
"""Languages of num2words, without two: Amharic never returns, Serbian is in Latin letters only."""
_CONVERTER_CODES = {"kk": "kz", "nb": "no"}
_UNSPACED = frozenset({"ko", "th"})
LONGEST_QUANTITY = 15  # digits; longer numbers are serial numbers, read digit by digit


def name_digits(text: str, language: str) -> str:
    """Replace every digit that is left by its name, for tokenizers of letters.

    The digits of tones stay, as in `ni3`.
    """
    text = text if language in MANDARIN else separate_fractions(text)
    if not any(map(str.isdecimal, text)) or language == "de":
        return text
    names = str(load_table("digits").get(language, "")).split() or [
        say("to_cardinal", digit, language) for digit in range(10 * (language in LANGUAGES))
    ]
    digits = "(?!)" if not names else r"(?<![a-zü\d])\d+" if language in MANDARIN else r"\d+"

    def spoken(match: re.Match[str]) -> str:
        return spaced(text, *match.span(), " ".join(names[unicodedata.digit(digit)] for digit in match[0]), language)

    return re.sub(digits, spoken, text)


def spaced(text: str, start: int, end: int, words: str, language: str) -> str:
    """Return the words for a part of a text, with spaces if letters touch it: `mp3` is `mp three`.

    In English a hyphen shows that an A is not an article: `A4` is `A-four`.
    """
    if language in _UNSPACED:
        return words
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    hyphens = [language == "en" and re.search(*a) for a in ((r"(?<![^\W\d_])[Aa]$", before), (r"^[Aa](?!\w)", after))]
    gaps = ["-" if hyphen else " " for hyphen in hyphens]
    return gaps[0] * before[-1:].isalpha() + words + gaps[1] * after[:1].isalpha()


@lru_cache(4096)
def say(how: str, value: int, language: str) -> str:
    """Return the words of num2words for a number, in English without `and`; raises `LookupError` if it has none."""
    from num2words import CONVERTER_CLASSES

    try:
        converter = CONVERTER_CLASSES[_CONVERTER_CODES.get(language, language)]
        words = str(getattr(converter, how)(value)).replace(",", "").strip()
    except (ArithmeticError, AttributeError, TypeError, ValueError, NotImplementedError) as error:
        raise LookupError(how) from error
    return words.replace(" and ", " ") if language == "en" else words


@lru_cache(4096)
def cldr_words(rules: str, value: int, language: str) -> str:
    """Return CLDR's words for a number by a set of rules, such as `spellout-cardinal-feminine`.

    Without one of this name, the first whose name begins so is used. Raises `LookupError` if the language has none.
    """
    engine = _cldr(language)
    names = sorted((name for name in engine.rulesets if name.startswith(rules)), key=rules.__ne__)
    if not names:
        raise LookupError(rules)
    return str(engine.format_number(value, ruleset_names=names[:1]).text).replace("\xad", "").replace(",", "")


@lru_cache
def _cldr(language: str) -> Any:  # noqa: ANN401 - of a library without types
    from unicode_rbnf import RbnfEngine

    try:
        return RbnfEngine.for_language(language)
    except ValueError as error:
        raise LookupError(language) from error
