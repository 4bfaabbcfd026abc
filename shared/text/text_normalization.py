"""Written text to words: numbers, money, times and abbreviations, for texts that nobody normalised.

`Dr. Smith has 12 boats in 1984, $5.50` becomes `Doctor Smith has twelve boats in nineteen eighty-four, five
dollars and fifty cents`. The same function serves the corpus and synthesis. Languages other than English have the rules
of `shared/text/number_words.py`.
"""

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from xtts.shared.text.number_words import number_words

if TYPE_CHECKING:
    import inflect

ABBREVIATIONS = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Messrs": "Messieurs", "Dr": "Doctor", "Prof": "Professor",
    "Rev": "Reverend", "Hon": "Honorable", "Gen": "General", "Col": "Colonel", "Maj": "Major", "Capt": "Captain",
    "Lt": "Lieutenant", "Sgt": "Sergeant", "Gov": "Governor", "Sen": "Senator", "Jr": "Junior", "Sr": "Senior",
    "Esq": "Esquire", "Ft": "Fort", "Mt": "Mount", "Co": "Company", "Ltd": "Limited", "Inc": "Incorporated",
    "vs": "versus", "etc": "et cetera",
}  # fmt: skip
"""Spoken in full where a full stop follows; `St.` is a saint before a capital letter, else a street."""
_BEFORE_A_NUMBER = {"No": "Number", "no": "number", "Vol": "Volume", "vol": "volume", "p": "page", "pp": "pages"}
_CURRENCIES = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}
_MAGNITUDES = "hundred|thousand|million|billion|trillion"
_LONGEST_QUANTITY = 15  # digits; longer ones are serial numbers, read digit by digit

_WHOLE = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+"
_ABBREVIATION = re.compile(rf"\b(St|{'|'.join(ABBREVIATIONS)})\.(?=(\s+[A-Z])?)(?=(\s*$)?)")
_NUMBERED = re.compile(rf"\b({'|'.join(_BEFORE_A_NUMBER)})\.\s*(?=[0-9])")
_NUMBER = re.compile(
    rf"(?P<currency>[$£€])\s?(?P<amount>{_WHOLE})(?:\.(?P<part>[0-9]+))?(?:\s(?P<magnitude>{_MAGNITUDES})\b)?"
    r"|(?<![0-9:])(?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])(?![0-9:])"
    r"|(?<![0-9/])(?P<upper>[0-9]{1,3})[/\u2044](?P<lower>[1-9][0-9]{0,2})(?![0-9/])"
    rf"|(?P<ordinal>{_WHOLE})(?:st|nd|rd|th)\b"
    r"|(?P<decade>[12][0-9][0-9]0|[2-9]0)'?s\b"
    rf"|(?P<decimal>(?:{_WHOLE})\.[0-9]+)"
    r"|(?P<year>(?<![0-9,.])(?:1[1-9]|20)[0-9]{2}(?![0-9]|,[0-9]))"
    rf"|(?P<whole>{_WHOLE})"
)
_SIGNS = ((re.compile(r"(?<![\w.,)])[-\u2212](?=[0-9])"), "minus "), (re.compile(r"(?<=[0-9])\s?%"), " percent"))


def expand(text: str, language: str = "en") -> str:
    """The words of `text`; a text without numbers and abbreviations comes back as it is.

    `language` is an ISO 639 code; what has no rule in it is left alone.
    """
    if language != "en":
        return number_words(text, language)
    plain = unicodedata.normalize("NFKC", text)
    expanded = _NUMBERED.sub(lambda found: _BEFORE_A_NUMBER[found[1]] + " ", plain)
    expanded = _ABBREVIATION.sub(_abbreviation, expanded)
    for pattern, word in _SIGNS:
        expanded = pattern.sub(word, expanded)
    expanded = _NUMBER.sub(_spaced, expanded)
    expanded = re.sub(r"\s*&\s*", " and ", expanded)
    return text if expanded == plain else expanded.strip()


def _abbreviation(found: re.Match[str]) -> str:
    word, before_capital, at_end = found.groups()
    spoken = ("Saint" if before_capital else "Street") if word == "St" else ABBREVIATIONS[word]
    touches = found.string[found.end() :][:1].isalpha()
    return spoken + ("." if at_end is not None else " " if touches else "")


def _spaced(found: re.Match[str]) -> str:
    """The words of a number, apart from letters that touch it: `mp3` is `mp three`."""
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return (" " if before.isalpha() else "") + _words(found) + (" " if after.isalpha() else "")


def _words(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if found["currency"]:
        return _money(found)
    if found["hour"]:
        return f"{_cardinal(found['hour'])} {_minutes(found['minute'])}"
    if found["upper"]:
        return _fraction(int(found["upper"]), int(found["lower"]))
    if found["decade"]:
        return _plural(_year(found["decade"]) if len(found["decade"]) == 4 else _cardinal(found["decade"]))
    if kind == "ordinal":
        return _ordinal(found["ordinal"])
    return _year(found["year"]) if found["year"] else _cardinal(found[0])


def _money(found: re.Match[str]) -> str:
    amount, part, (unit, cent) = found["amount"], found["part"], _CURRENCIES[found["currency"]]
    if found["magnitude"] or (part and len(part) != 2):
        number = f"{amount}.{part}" if part else amount
        return " ".join(filter(None, [_cardinal(number), found["magnitude"], _plural(unit)]))
    counts = [(amount.lstrip("0,"), unit), ((part or "").lstrip("0"), cent)]
    spoken = [f"{_cardinal(count)} {name if count == '1' else _plural(name)}" for count, name in counts if count]
    return " and ".join(spoken) or f"zero {_plural(unit)}"


def _minutes(minute: str) -> str:
    if minute == "00":
        return "o'clock"
    return f"oh {_cardinal(minute[1])}" if minute[0] == "0" else _cardinal(minute)


def _fraction(upper: int, lower: int) -> str:
    if not 1 <= upper < lower:
        return f"{_cardinal(str(upper))} over {_cardinal(str(lower))}"
    part = {2: "half", 4: "quarter"}.get(lower) or _ordinal(str(lower))
    return f"{_cardinal(str(upper))} {part if upper == 1 else _plural(part)}"


def _year(digits: str) -> str:
    """1984 in pairs, as years are read; 2000 to 2009 as a number."""
    first, last = digits[:2], digits[2:]
    if digits.startswith("200"):
        return _cardinal(digits)
    if last == "00":
        return f"{_cardinal(first)} hundred"
    return f"{_cardinal(first)} {'oh ' if last[0] == '0' else ''}{_cardinal(last.lstrip('0'))}"


def _cardinal(number: str) -> str:
    """`1,234.5` in words; a leading zero or too many digits are read one by one."""
    whole, point, part = number.replace(",", "").partition(".")
    single = len(whole) > _LONGEST_QUANTITY or (whole.startswith("0") and len(whole) > 1 and not point)
    spoken = " ".join(map(_integer, whole)) if single else _integer(str(int(whole)))
    return " ".join([spoken, *(["point", *map(_integer, part)] if point else [])])


@lru_cache(4096)
def _integer(digits: str) -> str:
    return str(_engine().number_to_words(digits, andword="")).replace(",", "")


def _ordinal(number: str) -> str:
    return str(_engine().ordinal(_cardinal(number)))


def _plural(words: str) -> str:
    """Pennies are pence; the last word decides."""
    head, space, last = words.rpartition(" ")
    return head + space + ("pence" if last == "penny" else str(_engine().plural_noun(last)))


@lru_cache
def _engine() -> "inflect.engine":
    """Loaded at the first number: the import takes a second."""
    import inflect

    return inflect.engine()
