"""Written text to words: numbers, money, times and abbreviations, for texts that are not normalised.

`Dr. Smith has 12 boats in 1984, $5.50` becomes `Doctor Smith has twelve boats in nineteen eighty-four, five
dollars and fifty cents`. The same function serves the corpus and synthesis. English and German have rules for the
contexts of numbers, `number_contexts.py`, other languages a grammar, `number_grammar.py`.
"""

import re
import unicodedata
from functools import lru_cache, partial

from xtts.shared.text.language_tables import entries, load_table
from xtts.shared.text.number_contexts import rewrite, separate_fractions
from xtts.shared.text.number_grammar import read_numbers
from xtts.shared.text.number_words import LONGEST_QUANTITY, say, spaced
from xtts.shared.text.pronunciation import Lexicon, apply_lexicon, outside_phonemes

_MAGNITUDES = "hundred|thousand|million|billion|trillion|Millionen|Milliarden|Billionen"
_AND, _ONE, _POINT_WORDS = {"en": " and ", "de": " und "}, {"en": "one", "de": "ein"}, {"en": "point", "de": "Komma"}
_GROUPS, _POINTS = {"en": ",", "de": "[.\u00a0\u202f\u2009 '\u2019]"}, {"en": ".", "de": ","}
_BORDERS = {"en": ("", ""), "de": ("(?<![0-9.,:/])", "(?![0-9]|[.,:/][0-9])")}


@lru_cache
def _numbers(language: str) -> re.Pattern[str]:
    """Return the pattern of what stays a number behind all contexts."""
    integer, point = rf"[0-9]{{1,3}}(?:{_GROUPS[language]}[0-9]{{3}})+(?![0-9])|[0-9]+", f"[{_POINTS[language]}]"
    before, behind = _BORDERS[language]
    return re.compile(
        rf"(?P<currency>[{''.join(_coins(language))}])\s?(?P<amount>{integer})(?:{point}(?P<fraction>[0-9]+))?"
        rf"(?:\s(?P<magnitude>{_MAGNITUDES})\b)?"
        rf"|(?P<ordinal>{integer})(?:st|nd|rd|th)\b|(?P<decade>[12][0-9][0-9]0|[2-9]0)'?s\b"
        rf"|{before}(?:(?:{integer}){point}[0-9]+"
        rf"|(?P<year>(?<![0-9,.])(?:1[1-9]|20)[0-9]{{2}}(?![0-9]|,[0-9]))|(?:{integer})){behind}"
    )


@lru_cache
def _coins(language: str) -> dict[str, list[str]]:
    """Return (unit, units, cent, cents) of each sign of money."""
    return {sign: names.split() for sign, names in entries(load_table(language)["coins"]).items()}


def expand(text: str, language: str = "en", lexicon: Lexicon | None = None) -> str:
    """Replace the numbers and abbreviations of a text by words; without any, the text is returned unchanged.

    language: an ISO 639 code. What it has no rule for stays, as do phonemes in double brackets. lexicon: readings that
    come first, `written_entries`.
    """
    text = apply_lexicon(text, lexicon or {})
    return outside_phonemes(text, lambda words: _expand(words, language))


def _expand(text: str, language: str) -> str:
    if language not in _POINTS:
        return read_numbers(text, language)
    text = separate_fractions(text).replace("\xba", "°")
    plain = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
    plain = unicodedata.normalize("NFKC", plain) if language == "en" else plain
    expanded = rewrite(
        plain, language, ordinal=partial(_ordinal, language=language), cardinal=partial(_cardinal, language=language)
    )
    if any(map(str.isdecimal, expanded)):
        expanded = _numbers(language).sub(lambda match: spaced(match, _words(match, language), language), expanded)
        expanded = re.sub("[0-9]+", lambda match: spaced(match, _one_by_one(match[0], language), language), expanded)
    return text if expanded == plain else expanded.strip()


def _words(match: re.Match[str], language: str) -> str:
    if match["currency"]:
        return _money(match, language)
    if decade := match["decade"]:
        words = _year(decade) if len(decade) == 4 else _cardinal(decade, language)
        return f"{re.sub('y$', 'ie', words)}s"
    if match["ordinal"]:
        return _ordinal(match["ordinal"], language)
    return _year(match["year"]) if match["year"] and language == "en" else _cardinal(match[0], language)


def _money(match: re.Match[str], language: str) -> str:
    amount, fraction, coins = match["amount"], match["fraction"], _coins(language)[match["currency"]]
    if match["magnitude"] or (fraction and len(fraction) != 2):
        words = _cardinal(f"{amount}{_POINTS[language]}{fraction}" if fraction else amount, language)
        return " ".join(filter(None, [words, match["magnitude"], coins[1]]))
    counts = [(amount.lstrip("0,."), coins[:2]), ((fraction or "").lstrip("0"), coins[2:])]
    spoken = [
        f"{_ONE[language]} {names[0]}" if count == "1" else f"{_cardinal(count, language)} {names[1]}"
        for count, names in counts if count
    ]
    return _AND[language].join(spoken) or f"{_cardinal('0', language)} {coins[1]}"


def _year(digits: str) -> str:
    """Read a year in pairs, as in nineteen eighty-four; 2000 to 2009 as a number."""
    return say("to_year", int(digits), "en").replace("oh-", "oh ")


def _cardinal(number: str, language: str) -> str:
    """Read a number such as `1,234.5`; digit by digit if it has a leading zero or too many digits."""
    if language == "de" and re.fullmatch("1[1-9][0-9]{2}", number):
        return say("to_year", int(number), "de")  # in hundreds
    integer, point, fraction = number.partition(_POINTS[language])
    integer = "".join(filter(str.isdecimal, integer))
    integer = integer.lstrip("0").rjust(1, "0") if point else integer
    if len(integer) > LONGEST_QUANTITY or (integer[0] == "0" and integer != "0"):
        words = _one_by_one(integer, language)
    else:
        words = say("to_cardinal", int(integer), language)
    return f"{words} {_POINT_WORDS[language]} {_one_by_one(fraction, language)}" if point else words


def _one_by_one(digits: str, language: str) -> str:
    return " ".join(say("to_cardinal", int(digit), language) for digit in digits)


def _ordinal(number: str, language: str) -> str:
    return say("to_ordinal", int("".join(filter(str.isdecimal, number))), language)
