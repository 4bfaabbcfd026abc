"""Written text to words: numbers, money, times and abbreviations, for texts that are not normalised.

`Dr. Smith has 12 boats in 1984, $5.50` becomes `Doctor Smith has twelve boats in nineteen eighty-four, five
dollars and fifty cents`. The same function serves the corpus and synthesis. In English and German the contexts of
numbers are rewritten first (`5 km/h` to `5 kilometers per hour`), by the rules of `grammars/rules.yaml`.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from xtts.shared.text.abbreviations import Abbreviations, any_of, load_abbreviations
from xtts.shared.text.language_tables import Forms, load_table, load_units
from xtts.shared.text.number_grammar import read_numbers
from xtts.shared.text.number_words import say
from xtts.shared.text.pronunciation import Lexicon, apply_lexicon, outside_phonemes
from xtts.shared.text.scripts import separate_fractions

_GROUP = re.compile(r"\{([0-9])(?::([a-z]+))?\}")
"""A pattern's group in a reading: `{1}`, `{1:ordinal}`."""
_WORD = re.compile(r"\{([a-z_]+)\}")
"""A pattern in a pattern, or a word of the language in a reading."""
_PER = re.compile(r"\s?/\s?(?P<number>[0-9][0-9.,]*)?\s?(?P<unit>[^/]+)")
_ROUND = frozenset("8 12 24 100 1000 1.000 1,000".split())  # what a price or a dose is per; others are second values
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


@dataclass(frozen=True, kw_only=True)
class _Context:
    """Words of a language and its rules: pattern, reading, what a text must contain for the pattern to be tried."""

    rules: tuple[tuple[re.Pattern[str], str, re.Pattern[str]], ...]
    words: Mapping[str, str]
    units: Mapping[str, Forms]
    abbreviations: Abbreviations


def expand(text: str, language: str = "en", lexicon: Lexicon | None = None) -> str:
    """Replace the numbers and abbreviations of a text by words; without any, the text is returned unchanged.

    language: an ISO 639 code. What it has no rule for stays, as do phonemes in double brackets. lexicon: readings that
    come first, `written_entries`.
    """
    text = apply_lexicon(text, lexicon or {})
    return outside_phonemes(text, lambda words: _expand(words, language))


def _expand(text: str, language: str) -> str:
    if "patterns" not in load_table(language):
        return read_numbers(text, language)
    text = separate_fractions(text).replace("\xba", "°")
    plain = re.sub(r"\d", lambda digit: str(unicodedata.digit(digit[0])), text)
    plain = unicodedata.normalize("NFKC", plain) if language == "en" else plain
    expanded = read_numbers(_rewrite(plain, language), language)
    return text if expanded == plain else expanded.strip()


def _rewrite(text: str, language: str) -> str:
    """Replace the contexts of numbers by words; what the language has no words for stays as it is."""
    context, text = _context(language), text.replace("\u2044", "/")
    number = partial(read_numbers, language=language)
    readers: dict[str, Callable[[str], str]] = {
        "": str, "roman": _roman, "joined": lambda group: "".join(filter(str.isdecimal, group)), "cardinal": number,
        "digits": lambda group: " ".join(number(c) for c in group.upper() if c.isalnum()),
        "ordinal": lambda group: say("to_ordinal", int("".join(filter(str.isdecimal, group))), language),
        "decade": lambda group: re.sub("y$", "ie", say("to_year", int(group), language)) + "s",
        "sign": lambda group: context.words["plus" if group == "+" else "minus"],
        "label": lambda group: "-A" if group in ("A", "a") else f" {group.upper()}" if group else "",  # no article
        "word": lambda group: context.words.get(group.rstrip("."), group),
    }
    present = dict[str, bool]()  # each `needed` is searched once: most texts have none
    for pattern, reading, needed in context.rules:
        if needed.pattern not in present:
            present[needed.pattern] = needed.search(text) is not None
        if present[needed.pattern]:
            changed = pattern.sub(partial(_read, reading=reading, context=context, readers=readers), text)
            if changed != text:
                text, present = changed, {}
    return text


def _read(match: re.Match[str], *, reading: str, context: _Context, readers: Mapping[str, Callable[[str], str]]) -> str:
    """Return the reading of a rule's match, or the matched text if a word is missing."""
    try:
        if reading in _FUNCTIONS:
            return _FUNCTIONS[reading](match, context)
        return _GROUP.sub(lambda group: readers[group[2] or ""](match[int(group[1])] or ""), reading)
    except LookupError:
        return match[0]


def _roman(numeral: str) -> str:
    """Return the value of a Roman numeral in digits: `44` for `XLIV`."""
    values = [_ROMAN_DIGITS[letter] for letter in numeral]
    return str(sum(-value if value < max(values[i:]) else value for i, value in enumerate(values)))


def _address(match: re.Match[str], context: _Context) -> str:
    """Return a web or mail address with its signs in words."""
    plain = match[1].replace("www.", "w w w.", 1)
    return re.sub("[./@_?=&#:%+~-]", lambda sign: f" {context.words[sign[0]]} ", plain)


def _measure(match: re.Match[str], context: _Context) -> str:
    """Return a number with its unit, and the units that it is per: `5 kilometers per hour`."""
    if match[1] != "1":
        return _per(match[3] or "", _unit(match[2], context).replace("{0}", match[1]), context)
    spoken = _unit(match[2], context, "one")
    is_feminine = spoken.endswith("e") and not spoken.endswith(("mpere", "säule"))  # German units
    return _per(match[3] or "", spoken.replace("{0}", context.words["one" if is_feminine else "a"]), context)


def _unit(symbol: str, context: _Context, form: str = "other") -> str:
    forms = context.units[" ".join(symbol.replace(". ", " ").split())]
    return forms.get(form, forms["other"])


def _per(units: str, spoken: str, context: _Context) -> str:
    """Append units that each stand after a slash: `/kg/day`, `/100 ml`, `/person`."""
    for match in _PER.finditer(units):
        unit, number, per = match["unit"].strip(" ."), match["number"], context.words["per"]
        if number:
            spoken += f" {per if number in _ROUND else '/'} {_unit(unit, context).replace('{0}', number)}"
        elif unit in context.words or unit not in context.units:
            spoken += f" {per} {context.words.get(unit, unit)}"
        else:
            spoken = context.units[unit]["per"].replace("{0}", spoken)
    return spoken


_FUNCTIONS: Mapping[str, Callable[[re.Match[str], _Context], str]] = {
    "measure": _measure, "address": _address,
    "compound": lambda match, context: _unit(match[2], context, "one").replace("{0}", match[1]),
    "per": lambda match, context: _per(match[0], "", context),
    "abbreviation": lambda match, context: context.abbreviations.spell_out(match[0]),
}


@lru_cache
def _context(language: str) -> _Context:
    table, units, abbreviations = load_table(language), load_units(language), load_abbreviations(language)
    assert abbreviations is not None
    words, own = table["words"], table["unit_patterns"]
    symbols = any_of(symbol for symbol in units if symbol not in own and symbol[-1] != ".")
    folded = {**load_table("contexts"), **table["patterns"]}
    patterns = {name: re.sub(r"\|\s+", "|", pattern) for name, pattern in folded.items()}
    patterns["units"] = f"(?:{'|'.join(own.values())}|{symbols})".replace(r"\ ", r"\.?\s")

    def compiled(pattern: str, reading: str, needed: str = "[0-9]") -> tuple[re.Pattern[str], str, re.Pattern[str]]:
        while (expanded := _WORD.sub(lambda name: patterns[name[1]], pattern)) != pattern:
            pattern = expanded
        reading = _WORD.sub(lambda name: words[name[1].replace("_", " ")], reading)
        return re.compile(pattern), reading, re.compile(needed)

    chosen = [rule for rule in load_table("rules")["rules"] if rule[0] == language or len(rule[0]) != 2]
    rules = tuple(compiled(*rule[rule[0] == language :]) for rule in chosen)
    return _Context(rules=rules, words=words, units=units, abbreviations=abbreviations)
