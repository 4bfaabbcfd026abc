"""Written text to words: numbers, money, times and abbreviations, for texts that are not normalised.

`Dr. Smith has 12 boats in 1984, $5.50` becomes `Doctor Smith has twelve boats in nineteen eighty-four, five
dollars and fifty cents`. The same function serves the corpus and synthesis. Contexts of numbers are in
`shared/text/number_contexts.yaml`, German numbers in `number_words.py`,
those of other languages in `number_grammar.py`.
"""

import re
import unicodedata

from xtts.shared.text.number_contexts import rewrite, separate_fractions
from xtts.shared.text.number_grammar import read_numbers
from xtts.shared.text.number_words import german_numbers, in_words, say, spaced
from xtts.shared.text.pronunciation import Lexicon, apply_lexicon, outside_phonemes

_CURRENCIES = {"$": "dollar cent", "£": "pound penny", "€": "euro cent", "¥": "yen sen", "₹": "rupee paisa"}
_PLURALS = {"penny": "pence", "yen": "yen", "sen": "sen", "paisa": "paise"}
_MAGNITUDES = "hundred|thousand|million|billion|trillion"

_INTEGER = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+"
_NUMBER = re.compile(
    rf"(?P<currency>[$£€¥₹])\s?(?P<amount>{_INTEGER})(?:\.(?P<fraction>[0-9]+))?(?:\s(?P<magnitude>{_MAGNITUDES})\b)?"
    rf"|(?P<ordinal>{_INTEGER})(?:st|nd|rd|th)\b"
    r"|(?P<decade>[12][0-9][0-9]0|[2-9]0)'?s\b"
    rf"|(?P<decimal>(?:{_INTEGER})\.[0-9]+)"
    r"|(?P<year>(?<![0-9,.])(?:1[1-9]|20)[0-9]{2}(?![0-9]|,[0-9]))"
    rf"|(?P<integer>{_INTEGER})"
)


def expand(text: str, language: str = "en", lexicon: Lexicon | None = None) -> str:
    """Replace the numbers and abbreviations of a text by words; without any, the text is returned unchanged.

    language: an ISO 639 code. What it has no rule for stays, as do phonemes in double brackets. lexicon: readings that
    come first, `written_entries`.
    """
    text = apply_lexicon(text, lexicon or {})
    return outside_phonemes(text, lambda words: _expand(words, language))


def _expand(text: str, language: str) -> str:
    if language != "en":
        return german_numbers(text) if language == "de" else read_numbers(text, language)
    plain = unicodedata.normalize("NFKC", separate_fractions(text))
    expanded = rewrite(plain, language, ordinal=_ordinal, cardinal=_cardinal)
    if any(map(str.isdecimal, expanded)):
        expanded = _NUMBER.sub(lambda match: spaced(match, _words(match), language), expanded)
    return text if expanded == plain else expanded.strip()


def _words(match: re.Match[str]) -> str:
    if match["currency"]:
        return _money(match)
    if decade := match["decade"]:
        return _plural(_year(decade) if len(decade) == 4 else _cardinal(decade))
    if match["ordinal"]:
        return _ordinal(match["ordinal"])
    return _year(match["year"]) if match["year"] else _cardinal(match[0])


def _money(match: re.Match[str]) -> str:
    amount, fraction, (unit, cent) = match["amount"], match["fraction"], _CURRENCIES[match["currency"]].split()
    if match["magnitude"] or (fraction and len(fraction) != 2):
        words = _cardinal(f"{amount}.{fraction}" if fraction else amount)
        return " ".join(filter(None, [words, match["magnitude"], _plural(unit)]))
    counts = [(amount.lstrip("0,"), unit), ((fraction or "").lstrip("0"), cent)]
    spoken = [f"{_cardinal(count)} {name if count == '1' else _plural(name)}" for count, name in counts if count]
    return " and ".join(spoken) or f"zero {_plural(unit)}"


def _year(digits: str) -> str:
    """Read a year in pairs, as in nineteen eighty-four; 2000 to 2009 as a number."""
    return say("to_year", int(digits), "en").replace("oh-", "oh ")


def _cardinal(number: str) -> str:
    """Read a number such as `1,234.5`; digit by digit if it has a leading zero or too many digits."""
    integer, point, fraction = number.replace(",", "").partition(".")
    return in_words(str(int(integer)) if point else integer, fraction, "en") or number


def _ordinal(number: str) -> str:
    return say("to_ordinal", int(number.replace(",", "")), "en")


def _plural(noun: str) -> str:
    """Return the plural of a coin or a decade."""
    return _PLURALS.get(noun) or f"{re.sub('y$', 'ie', noun)}s"
