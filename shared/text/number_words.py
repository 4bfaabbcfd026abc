# ruff: noqa: RUF001 - words of many scripts
"""Numbers in words by `num2words`; percent and money too, for every language but English (`text_normalization`).

What cannot be read as a number is read digit by digit. No English word may get into a text of another language, but
num2words mixes them in: the entries of every table here were checked.
"""

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import Any

from xtts.shared.languages import MANDARIN
from xtts.shared.text.number_contexts import digit_names, rewrite, separate_fractions, word_of

_LANGUAGES = frozenset(
    "ar az be bn ca cs cy da de eo es fa fi fr he hu id is it kk kn ko lt lv nb nl no pl pt ro ru sk sl sv te tg th tr "
    "uk vi".split()
)
"""Languages of num2words, without two: Amharic never returns, Serbian is in Latin letters only."""
_CONVERTER_CODES = {"kk": "kz", "nb": "no"}
_WITH_MONEY = frozenset("be ca cs de eo es fi fr it lt lv nl pl pt ru sk tg uk".split())
"""Languages whose currencies num2words has; in others they are English, or always riyals."""
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "₽": "RUB", "₺": "TRY", "₴": "UAH"}
_DECIMAL_POINT = frozenset("ar bn cy fa he kn ko te th".split())
"""Languages that write 3.5 and 1,000; the others write 3,5 and 1.000 or 1 000."""
_YEARS_IN_HUNDREDS = frozenset("da de nb nl no".split())
_UNSPACED = frozenset({"ko", "th"})
LONGEST_QUANTITY = 15  # digits; longer numbers are serial numbers, read digit by digit


def number_words(text: str, language: str) -> str:
    """Replace the numbers of a text by words; no change if num2words does not read the language well."""
    plain = language != "de" and not any(map(str.isnumeric, text))  # German has rules without numbers
    if plain or language not in _LANGUAGES:
        return text
    text = rewrite(
        separate_fractions(text), language,
        ordinal=lambda digits: say("to_ordinal", int(digits), language),
        cardinal=lambda digits: _year(digits, language) or say("to_cardinal", int(digits), language),
    )  # fmt: skip
    if language == "tr":
        text = re.sub(r"[%٪]\s?(?=\d)", "yüzde ", text)
    text = _pattern(language).sub(lambda match: spaced(match, _words(match, language), language), text)
    return re.sub(r"\d+", lambda match: spaced(match, in_words(match[0], "", language, single=True), language), text)


def name_digits(text: str, language: str) -> str:
    """Replace every digit by its name, for tokenizers of letters; no change if `number_words` reads the language.

    The digits of tones stay, as in `ni3`.
    """
    if not any(map(str.isdecimal, text)) or not (names := digit_names(language)):
        return text
    digits = r"(?<![a-zü\d])\d+" if language in MANDARIN else r"\d+"

    def spoken(match: re.Match[str]) -> str:
        return spaced(match, " ".join(names[unicodedata.digit(digit)] for digit in match[0]), language)

    return re.sub(digits, spoken, text)


@lru_cache
def _pattern(language: str) -> re.Pattern[str]:
    point, group = (r"[.٫]", r"[,٬]") if language in _DECIMAL_POINT else (",", r"[.\u00a0\u202f\u2009 ’']")
    integer = rf"\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+"
    signs = "".join(map(re.escape, _SIGNS))
    ending = "" if language in _UNSPACED or language == "de" else r"(?!-?[^\W\d_])"  # an ordinal's ending, or a unit
    return re.compile(
        rf"(?<![\d.,:/٫٬])(?P<before>[{signs}]\s?)?(?P<minus>(?<![\w)])[-\u2212])?"
        rf"(?<!\d)(?P<integer>{integer})(?:{point}(?P<fraction>\d+))?(?!\d|[.,:/٫٬]\d){ending}"
        rf"(?P<after>\s?[{signs}]|\s?[%٪])?"
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


def _words(match: re.Match[str], language: str) -> str | None:
    """Return the words for a match of `_pattern`; None if the language has no rule for it."""
    integer = "".join(str(unicodedata.digit(c)) for c in match["integer"] if c.isdecimal())
    fraction = "".join(str(unicodedata.digit(c)) for c in match["fraction"] or "")
    before, after = (match["before"] or "").strip(), (match["after"] or "").strip()
    sign = before or (after if after in _SIGNS else "")
    if sign and not match["minus"] and (spoken := _money(integer, fraction, _SIGNS[sign], language)):
        return spoken + (match["after"] or "" if before else "")
    year = None if fraction or match["minus"] else _year(match["integer"], language)
    spoken = year or in_words(integer, fraction, language, negative=bool(match["minus"]))
    if spoken is None:
        return None
    percent = word_of("percent", language) if after in ("%", "٪") else ""
    return (match["before"] or "") + spoken + (f" {percent}" if percent else match["after"] or "")


def in_words(integer: str, fraction: str, language: str, *, negative: bool = False, single: bool = False) -> str | None:
    """Return a number in words, digit by digit if `single` or if it is a serial number; None without words for it."""
    single = single or len(integer) > LONGEST_QUANTITY or (integer.startswith("0") and len(integer) > 1)
    sign = word_of("decimal_sign", language)
    if (fraction and not sign) or (negative and single):
        return None
    values = [*map(int, integer)] if single else [-int(integer) if negative else int(integer)]
    minus = [str(_converter(language).negword).strip()] if negative and values == [0] else []
    try:
        words = [say("to_cardinal", value, language) for value in values]
        decimals = [say("to_cardinal", int(digit), language) for digit in fraction]
    except LookupError:
        return None
    return " ".join([*minus, *words, *([sign, *decimals] if fraction else [])])


def _year(digits: str, language: str) -> str | None:
    """Return a year in hundreds; None if the language does not read years so, or it is not a year."""
    if language not in _YEARS_IN_HUNDREDS or not re.fullmatch("1[1-9][0-9]{2}", digits):
        return None
    return say("to_year", int(digits), language)


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


def _money(integer: str, fraction: str, currency: str, language: str) -> str | None:
    if language not in _WITH_MONEY or len(fraction) not in (0, 2) or len(integer) > LONGEST_QUANTITY:
        return None
    large, small = int(integer), int(fraction or 0)
    separator = {} if large and small else {"separator": "|"}
    try:
        spoken = str(_converter(language).to_currency(Decimal(f"{integer}.{small:02}"), currency=currency, **separator))
    except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError):
        return None
    return spoken.replace(",", "").split("|")[-1 if small and not large else 0].strip()


def _converter(language: str) -> Any:  # noqa: ANN401 - a class of a library without types
    from num2words import CONVERTER_CLASSES

    return CONVERTER_CLASSES[_CONVERTER_CODES.get(language, language)]
