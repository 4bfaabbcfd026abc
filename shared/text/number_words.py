# ruff: noqa: RUF001 - words of many scripts
"""Numbers, percent and money in words by `num2words` (extra `numbers`), for every language but English.

What a language has no rule for stays as it is: times, dates, fractions, and ordinals such as `3. Mai`. Never does an
English word get into a text of another language: num2words' own tables mix them in, so that what is listed here was
looked at.
"""

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from num2words.base import Num2Word_Base

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
_ORDINAL_POINT = frozenset("cs da de et fi hr hu is lv nb no pl sk sl sr tr".split())
"""`3. Mai` is an ordinal, whose ending nobody here knows."""
_UNSPACED = frozenset({"ko", "th"})
_LONGEST_QUANTITY = 15  # digits; longer ones are serial numbers, read digit by digit


def number_words(text: str, language: str) -> str:
    """The text with its numbers in words; as it is without num2words, or where it does not know the language."""
    if language not in _LANGUAGES or not any(map(str.isdecimal, text)) or _converter(language) is None:
        return text
    if language == "tr":
        text = re.sub(r"[%٪]\s?(?=\d)", "yüzde ", text)
    return _pattern(language).sub(lambda found: _spaced(found, language), text)


@lru_cache
def _pattern(language: str) -> re.Pattern[str]:
    point, group = (r"[.٫]", r"[,٬]") if language in _DECIMAL_POINT else (",", r"[.\u00a0\u202f\u2009 ’']")
    whole = rf"\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+"
    signs = "".join(map(re.escape, _SIGNS))
    ordinal = r"(?!\.\s+\w)" if language in _ORDINAL_POINT else ""
    ending = "" if language in _UNSPACED else r"(?!-?[^\W\d_])"  # the end of an ordinal, or a unit
    return re.compile(
        rf"(?<![\d.,:/٫٬])(?P<before>[{signs}]\s?)?(?P<minus>(?<![\w)])[-\u2212])?"
        rf"(?<!\d)(?P<whole>{whole})(?:{point}(?P<part>\d+))?(?!\d|[.,:/٫٬]\d){ordinal}{ending}"
        rf"(?P<after>\s?[{signs}]|\s?[%٪])?"
    )


def _spaced(found: re.Match[str], language: str) -> str:
    """The words of a number, apart from letters that touch it."""
    words = _words(found, language)
    if words is None or language in _UNSPACED:
        return found[0] if words is None else words
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
    number = _number(whole, part, language, negative=bool(found["minus"]))
    if number is None:
        return None
    percent = _PERCENT.get(language) if after in ("%", "٪") else None
    return (found["before"] or "") + number + (f" {percent}" if percent else found["after"] or "")


def _number(whole: str, part: str, language: str, *, negative: bool) -> str | None:
    single = len(whole) > _LONGEST_QUANTITY or (whole.startswith("0") and len(whole) > 1)
    sign = _DECIMAL_SIGN.get(language)
    if (part and sign is None) or (negative and single):
        return None
    values = [*map(int, whole)] if single else [-int(whole) if negative else int(whole)]
    words = [_cardinal(value, language) for value in values]
    decimals = [_cardinal(int(digit), language) for digit in part]
    spoken = [*words, *([sign, *decimals] if part else [])]
    return None if None in spoken else " ".join(filter(None, spoken))


@lru_cache(4096)
def _cardinal(value: int, language: str) -> str | None:
    converter = _converter(language)
    try:
        return None if converter is None else str(converter.to_cardinal(value)).replace(",", "").strip()
    except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError):
        return None  # some of its languages know small numbers alone


def _money(whole: str, part: str, unit: str, language: str) -> str | None:
    converter = _converter(language)
    if converter is None or language not in _WITH_MONEY or len(part) not in (0, 2) or len(whole) > _LONGEST_QUANTITY:
        return None
    try:
        if int(part or 0):
            return str(converter.to_currency(Decimal(f"{whole}.{part}"), currency=unit)).replace(",", "")
        return (
            str(converter.to_currency(Decimal(f"{whole}.00"), currency=unit, separator="|")).partition("|")[0].strip()
        )
    except (ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError):
        return None


@lru_cache
def _converter(language: str) -> "Num2Word_Base | None":
    try:
        from num2words import CONVERTER_CLASSES
    except ImportError:
        return None
    return CONVERTER_CLASSES.get(_OWN_CODES.get(language, language))
