"""Written text to words: numbers, money, times and abbreviations, for texts that nobody normalised.

`Dr. Smith has 12 boats in 1984, $5.50` becomes `Doctor Smith has twelve boats in nineteen eighty-four, five
dollars and fifty cents`. The same function serves the corpus and synthesis. What stands around
numbers is in `shared/text/number_contexts.yaml`; numbers of other languages than English in `number_words.py`.
"""

import re
import unicodedata
from functools import lru_cache

from num2words import num2words

from xtts.shared.text.number_contexts import part_fractions, rewrite
from xtts.shared.text.number_words import LONGEST_QUANTITY, number_words, spaced
from xtts.shared.text.pronunciation import outside_phonemes

_CURRENCIES = {"$": "dollar cent", "£": "pound penny", "€": "euro cent", "¥": "yen sen", "₹": "rupee paisa"}
_PLURALS = {"penny": "pence", "yen": "yen", "sen": "sen", "paisa": "paise"}
_MAGNITUDES = "hundred|thousand|million|billion|trillion"

_WHOLE = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+"
_NUMBER = re.compile(
    rf"(?P<currency>[$£€¥₹])\s?(?P<amount>{_WHOLE})(?:\.(?P<part>[0-9]+))?(?:\s(?P<magnitude>{_MAGNITUDES})\b)?"
    rf"|(?P<ordinal>{_WHOLE})(?:st|nd|rd|th)\b"
    r"|(?P<decade>[12][0-9][0-9]0|[2-9]0)'?s\b"
    rf"|(?P<decimal>(?:{_WHOLE})\.[0-9]+)"
    r"|(?P<year>(?<![0-9,.])(?:1[1-9]|20)[0-9]{2}(?![0-9]|,[0-9]))"
    rf"|(?P<whole>{_WHOLE})"
)


def expand(text: str, language: str = "en") -> str:
    """The words of `text`; a text without numbers and abbreviations comes back as it is.

    `language` is an ISO 639 code; what has no rule in it is left alone, and so are phonemes in double brackets.
    """
    return outside_phonemes(text, lambda words: _expand(words, language))


def _expand(text: str, language: str) -> str:
    if language != "en":
        return number_words(text, language)
    plain = unicodedata.normalize("NFKC", part_fractions(text))
    expanded = rewrite(plain, language, ordinal=_ordinal, cardinal=_cardinal)
    if any(map(str.isdecimal, expanded)):
        expanded = _NUMBER.sub(lambda found: spaced(found, _words(found), language), expanded)
    return text if expanded == plain else expanded.strip()


def _words(found: re.Match[str]) -> str:
    if found["currency"]:
        return _money(found)
    if found["decade"]:
        return _plural(_year(found["decade"]) if len(found["decade"]) == 4 else _cardinal(found["decade"]))
    if found["ordinal"]:
        return _ordinal(found["ordinal"])
    return _year(found["year"]) if found["year"] else _cardinal(found[0])


def _money(found: re.Match[str]) -> str:
    amount, part, (unit, cent) = found["amount"], found["part"], _CURRENCIES[found["currency"]].split()
    if found["magnitude"] or (part and len(part) != 2):
        number = f"{amount}.{part}" if part else amount
        return " ".join(filter(None, [_cardinal(number), found["magnitude"], _plural(unit)]))
    counts = [(amount.lstrip("0,"), unit), ((part or "").lstrip("0"), cent)]
    spoken = [f"{_cardinal(count)} {name if count == '1' else _plural(name)}" for count, name in counts if count]
    return " and ".join(spoken) or f"zero {_plural(unit)}"


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
    single = len(whole) > LONGEST_QUANTITY or (whole.startswith("0") and len(whole) > 1 and not point)
    spoken = " ".join(map(_integer, whole)) if single else _integer(str(int(whole)))
    return " ".join([spoken, *(["point", *map(_integer, part)] if point else [])])


@lru_cache(4096)
def _integer(digits: str) -> str:
    return _american(num2words(int(digits)))


def _ordinal(number: str) -> str:
    return _american(num2words(int(number.replace(",", "")), to="ordinal"))


def _american(words: str) -> str:
    """`one thousand, two hundred and one` without comma and `and`."""
    return words.replace(" and ", " ").replace(",", "")


def _plural(noun: str) -> str:
    """The plural of a coin or a decade."""
    return _PLURALS.get(noun) or f"{re.sub('y$', 'ie', noun)}s"
