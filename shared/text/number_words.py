# ruff: noqa: RUF001 - words of many scripts
"""Numbers, percent and money in words by `num2words`, for every language but English (`text_normalization`).

What cannot be read as a number is said digit by digit. Never does an English word get into a text of another language:
num2words' own tables mix them in, so that what is listed here was looked at.
"""

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import Any

from xtts.shared.languages import MANDARIN
from xtts.shared.text.number_contexts import digit_names, part_fractions, rewrite

_LANGUAGES = frozenset(
    "ar az be bn ca cs cy da de eo es fa fi fr he hu id is it kk kn ko lt lv nb nl no pl pt ro ru sk sl sv te tg th tr "
    "uk vi".split()
)
"""Others of num2words are left out: Amharic never ends, Serbian is in Latin letters alone."""
_OWN_CODES = {"kk": "kz", "nb": "no"}
_WITH_MONEY = frozenset("be ca cs de eo es fi fr it lt lv nl pl pt ru sk tg uk".split())
"""Where units are in the language; elsewhere they are English, or always riyals."""
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "₽": "RUB", "₺": "TRY", "₴": "UAH"}
_DECIMAL_POINT = frozenset("ar bn cy fa he kn ko te th".split())
"""Languages with 3.5 and 1,000; all others have 3,5 and 1.000 or 1 000."""
_DECIMAL_SIGN = {
    "ca": "coma", "da": "komma", "de": "Komma", "es": "coma", "fa": "ممیز", "fi": "pilkku", "fr": "virgule",
    "id": "koma", "it": "virgola", "ko": "점", "nb": "komma", "nl": "komma", "no": "komma", "pl": "przecinek",
    "pt": "vírgula", "ro": "virgulă", "sv": "komma", "th": "จุด", "tr": "virgül", "vi": "phẩy",
}  # fmt: skip
_PERCENT = {
    "ar": "بالمئة", "ca": "per cent", "da": "procent", "de": "Prozent", "es": "por ciento", "fa": "درصد",
    "fi": "prosenttia", "fr": "pour cent", "hu": "százalék", "id": "persen", "it": "per cento", "ko": "퍼센트",
    "nb": "prosent", "nl": "procent", "no": "prosent", "pt": "por cento", "ro": "la sută", "sv": "procent",
    "th": "เปอร์เซ็นต์", "vi": "phần trăm",
}  # fmt: skip
"""Words that follow any number unchanged."""
_YEARS_IN_HUNDREDS = frozenset("da de nb nl no".split())
_UNSPACED = frozenset({"ko", "th"})
LONGEST_QUANTITY = 15  # digits; longer ones are serial numbers, read digit by digit


def number_words(text: str, language: str) -> str:
    """The text with its numbers in words; as it is where num2words does not read the language well."""
    plain = language != "de" and not any(map(str.isnumeric, text))  # German has rules without numbers
    if plain or language not in _LANGUAGES:
        return text
    text = rewrite(
        part_fractions(text), language,
        ordinal=lambda digits: _say("to_ordinal", int(digits), language),
        cardinal=lambda digits: _year(digits, language) or _say("to_cardinal", int(digits), language),
    )  # fmt: skip
    if language == "tr":
        text = re.sub(r"[%٪]\s?(?=\d)", "yüzde ", text)
    text = _pattern(language).sub(lambda found: spaced(found, _words(found, language), language), text)
    return re.sub(r"\d+", lambda found: spaced(found, _number(found[0], "", language, single=True), language), text)


def name_digits(text: str, language: str) -> str:
    """The text with its digits one by one, for letters; as it is where `number_words` knows the language.

    Those of tones stay, as in `ni3`.
    """
    if not any(map(str.isdecimal, text)) or not (names := digit_names(language)):
        return text
    digits = r"(?<![a-zü\d])\d+" if language in MANDARIN else r"\d+"

    def spoken(found: re.Match[str]) -> str:
        return spaced(found, " ".join(names[unicodedata.digit(digit)] for digit in found[0]), language)

    return re.sub(digits, spoken, text)


@lru_cache
def _pattern(language: str) -> re.Pattern[str]:
    point, group = (r"[.٫]", r"[,٬]") if language in _DECIMAL_POINT else (",", r"[.\u00a0\u202f\u2009 ’']")
    whole = rf"\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+"
    signs = "".join(map(re.escape, _SIGNS))
    ending = "" if language in _UNSPACED or language == "de" else r"(?!-?[^\W\d_])"  # the end of an ordinal, or a unit
    return re.compile(
        rf"(?<![\d.,:/٫٬])(?P<before>[{signs}]\s?)?(?P<minus>(?<![\w)])[-\u2212])?"
        rf"(?<!\d)(?P<whole>{whole})(?:{point}(?P<part>\d+))?(?!\d|[.,:/٫٬]\d){ending}"
        rf"(?P<after>\s?[{signs}]|\s?[%٪])?"
    )


def spaced(found: re.Match[str], words: str | None, language: str) -> str:
    """The words, if there are any, apart from letters that touch them: `mp3` is `mp three`."""
    if words is None or language in _UNSPACED:
        return words or found[0]
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return (" " if before.isalpha() else "") + words + (" " if after.isalpha() else "")


def _words(found: re.Match[str], language: str) -> str | None:
    """None where the language has no rule for what was found."""
    whole = "".join(str(unicodedata.digit(c)) for c in found["whole"] if c.isdecimal())
    part = "".join(str(unicodedata.digit(c)) for c in found["part"] or "")
    before, after = (found["before"] or "").strip(), (found["after"] or "").strip()
    sign = before or (after if after in _SIGNS else "")
    if sign and not found["minus"] and (spoken := _money(whole, part, _SIGNS[sign], language)):
        return spoken + (found["after"] or "" if before else "")
    year = None if part or found["minus"] else _year(found["whole"], language)
    number = year or _number(whole, part, language, negative=bool(found["minus"]))
    if number is None:
        return None
    percent = _PERCENT.get(language) if after in ("%", "٪") else None
    return (found["before"] or "") + number + (f" {percent}" if percent else found["after"] or "")


def _number(whole: str, part: str, language: str, *, negative: bool = False, single: bool = False) -> str | None:
    """A number in words, digit by digit if `single` or if it is a serial number."""
    single = single or len(whole) > LONGEST_QUANTITY or (whole.startswith("0") and len(whole) > 1)
    sign = _DECIMAL_SIGN.get(language)
    if (part and sign is None) or (negative and single):
        return None
    values = [*map(int, whole)] if single else [-int(whole) if negative else int(whole)]
    minus = [str(_converter(language).negword).strip()] if negative and values == [0] else []
    try:
        words = [_say("to_cardinal", value, language) for value in values]
        decimals = [_say("to_cardinal", int(digit), language) for digit in part]
    except LookupError:
        return None
    return " ".join([*minus, *words, *([sign or "", *decimals] if part else [])])


def _year(digits: str, language: str) -> str | None:
    """Years that are read in hundreds; None where the language does not, or it is none."""
    if language not in _YEARS_IN_HUNDREDS or not re.fullmatch("1[1-9][0-9]{2}", digits):
        return None
    return _say("to_year", int(digits), language)


@lru_cache(4096)
def _say(how: str, value: int, language: str) -> str:
    """What num2words has for a number; a `LookupError` where it has nothing: some languages know small ones alone."""
    try:
        return str(getattr(_converter(language), how)(value)).replace(",", "").strip()
    except (ArithmeticError, AttributeError, TypeError, ValueError, NotImplementedError) as error:
        raise LookupError(how) from error


def _money(whole: str, part: str, unit: str, language: str) -> str | None:
    if language not in _WITH_MONEY or len(part) not in (0, 2) or len(whole) > LONGEST_QUANTITY:
        return None
    large, small = int(whole), int(part or 0)
    separator = {} if large and small else {"separator": "|"}
    try:
        spoken = str(_converter(language).to_currency(Decimal(f"{whole}.{small:02}"), currency=unit, **separator))
    except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError):
        return None
    return spoken.replace(",", "").split("|")[-1 if small and not large else 0].strip()


def _converter(language: str) -> Any:  # noqa: ANN401 - a class of a library without types
    from num2words import CONVERTER_CLASSES

    return CONVERTER_CLASSES[_OWN_CODES.get(language, language)]
