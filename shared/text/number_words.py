# ruff: noqa: RUF001 - words of many scripts
"""Numbers in words by `num2words` and CLDR; German percent and money too.

What cannot be read as a number is read digit by digit in German. No English word may get into a text of another
language, but num2words mixes them in: the entries of every table here were checked.
"""

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import Any

from xtts.shared.languages import MANDARIN
from xtts.shared.text.number_contexts import digit_names, rewrite, separate_fractions

LANGUAGES = frozenset(
    "ar az be bn ca cs cy da de eo es fa fi fr he hu id is it kk kn ko lt lv nb nl no pl pt ro ru sk sl sv te tg th tr "
    "uk vi".split()
)
"""Languages of num2words, without two: Amharic never returns, Serbian is in Latin letters only."""
_CONVERTER_CODES = {"kk": "kz", "nb": "no"}
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "₽": "RUB", "₺": "TRY", "₴": "UAH"}
_DECIMAL_SIGNS = {"en": "point", "de": "Komma"}
_UNSPACED = frozenset({"ko", "th"})
LONGEST_QUANTITY = 15  # digits; longer numbers are serial numbers, read digit by digit


def german_numbers(text: str) -> str:
    """Replace the numbers of a German text by words."""
    text = rewrite(
        separate_fractions(text), "de",
        ordinal=lambda digits: say("to_ordinal", int(digits), "de"),
        cardinal=lambda digits: _year(digits) or say("to_cardinal", int(digits), "de"),
    )
    text = _NUMBER.sub(lambda match: spaced(match, _words(match), "de"), text)
    return re.sub(r"\d+", lambda match: spaced(match, in_words(match[0], "", "de", single=True), "de"), text)


def name_digits(text: str, language: str) -> str:
    """Replace every digit that is left by its name, for tokenizers of letters.

    The digits of tones stay, as in `ni3`.
    """
    text = text if language in MANDARIN else separate_fractions(text)
    if not any(map(str.isdecimal, text)) or language == "de":
        return text
    names = digit_names(language) or [
        say("to_cardinal", digit, language) for digit in range(10 * (language in LANGUAGES))
    ]
    digits = r"(?<![a-zü\d])\d+" if language in MANDARIN else r"\d+"

    def spoken(match: re.Match[str]) -> str:
        return spaced(match, " ".join(names[unicodedata.digit(digit)] for digit in match[0]), language)

    return re.sub(digits, spoken, text) if names else text


_CURRENCY = "".join(map(re.escape, _SIGNS))
_NUMBER = re.compile(
    rf"(?<![\d.,:/٫٬])(?P<before>[{_CURRENCY}]\s?)?(?P<minus>(?<![\w)])[-\u2212])?"
    r"(?<!\d)(?P<integer>\d{1,3}(?:[.\u00a0\u202f\u2009 ’']\d{3})+(?!\d)|\d+)(?:,(?P<fraction>\d+))?"
    rf"(?!\d|[.,:/٫٬]\d)(?P<after>\s?[{_CURRENCY}]|\s?[%٪])?"
)


def spaced(match: re.Match[str], words: str | None, language: str) -> str:
    """Return the words for a match, with spaces if letters touch it: `mp3` is `mp three`; None leaves it unchanged.

    In English a hyphen shows that an A is not an article: `A4` is `A-four`.
    """
    if words is None or language in _UNSPACED:
        return words or match[0]
    before, after = match.string[: match.start()], match.string[match.end() :]
    hyphens = [language == "en" and re.search(*a) for a in ((r"(?<![^\W\d_])[Aa]$", before), (r"^[Aa](?!\w)", after))]
    gaps = ["-" if hyphen else " " for hyphen in hyphens]
    return gaps[0] * before[-1:].isalpha() + words + gaps[1] * after[:1].isalpha()


def _words(match: re.Match[str]) -> str | None:
    """Return the words for a match of `_NUMBER`; None if German has no rule for it."""
    integer = "".join(str(unicodedata.digit(c)) for c in match["integer"] if c.isdecimal())
    fraction = "".join(str(unicodedata.digit(c)) for c in match["fraction"] or "")
    before, after = (match["before"] or "").strip(), (match["after"] or "").strip()
    sign = before or (after if after in _SIGNS else "")
    if sign and not match["minus"] and (spoken := _money(integer, fraction, _SIGNS[sign])):
        return spoken + (match["after"] or "" if before else "")
    year = None if fraction or match["minus"] else _year(match["integer"])
    spoken = year or in_words(integer, fraction, "de", negative=bool(match["minus"]))
    if spoken is None:
        return None
    return (match["before"] or "") + spoken + (" Prozent" if after in ("%", "٪") else match["after"] or "")


def in_words(integer: str, fraction: str, language: str, *, negative: bool = False, single: bool = False) -> str | None:
    """Return an English or German number in words, digit by digit if `single` or a serial number; None if negative."""
    single = single or len(integer) > LONGEST_QUANTITY or (integer.startswith("0") and len(integer) > 1)
    if negative and single:
        return None
    values = [*map(int, integer)] if single else [-int(integer) if negative else int(integer)]
    words = [str(_converter(language).negword).strip()] if negative and values == [0] else []
    words += [say("to_cardinal", value, language) for value in values]
    decimals = [_DECIMAL_SIGNS[language], *(say("to_cardinal", int(digit), language) for digit in fraction)]
    return " ".join([*words, *decimals] if fraction else words)


def _year(digits: str) -> str | None:
    """Return a German year in hundreds; None if it is not a year."""
    return say("to_year", int(digits), "de") if re.fullmatch("1[1-9][0-9]{2}", digits) else None


@lru_cache(4096)
def say(how: str, value: int, language: str) -> str:
    """Return the words of num2words for a number, in English without `and`.

    Raises `LookupError` if it has none: some languages stop early.
    """
    try:
        words = str(getattr(_converter(language), how)(value)).replace(",", "").strip()
    except (ArithmeticError, AttributeError, TypeError, ValueError, NotImplementedError) as error:
        raise LookupError(how) from error
    return words.replace(" and ", " ") if language == "en" else words


def _money(integer: str, fraction: str, currency: str) -> str | None:
    if len(fraction) not in (0, 2) or len(integer) > LONGEST_QUANTITY:
        return None
    large, small = int(integer), int(fraction or 0)
    separator = {} if large and small else {"separator": "|"}
    try:
        spoken = str(_converter("de").to_currency(Decimal(f"{integer}.{small:02}"), currency=currency, **separator))
    except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError):
        return None
    return spoken.replace(",", "").split("|")[-1 if small and not large else 0].strip()


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
def _cldr(language: str) -> Any:  # noqa: ANN401 - as above
    from unicode_rbnf import RbnfEngine

    try:
        return RbnfEngine.for_language(language)
    except ValueError as error:
        raise LookupError(language) from error


def _converter(language: str) -> Any:  # noqa: ANN401 - a class of a library without types
    from num2words import CONVERTER_CLASSES

    return CONVERTER_CLASSES[_CONVERTER_CODES.get(language, language)]
