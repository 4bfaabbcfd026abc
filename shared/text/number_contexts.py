"""Contexts of numbers, rewritten so that the numbers can be read: `5 km/h` becomes `5 kilometers per hour`.

The rules for English and German are in `number_contexts.yaml`: they cover dates, times, phone numbers, addresses,
ranges, units, money, Roman numerals, abbreviations and signs. Digits stay where `text_normalization` and `number_words`
read them correctly.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import yaml

_FRACTION = re.compile(r"(\d?)([\u00bc-\u00be\u2150-\u215e])")
_POWER = re.compile(r"(?:(?<=[0-9])|(?<=\b[abcnrtxyz])|(?<=\bmc))[\u00b2\u00b3]")
"""The exponent of a number, of a variable, or of light's speed in `mc²`: not that of a unit, as in `m²`."""
_GROUP = re.compile(r"\{([0-9])(?::([a-z]+))?\}")
"""A pattern's group in a reading: `{1}`, `{1:ordinal}`."""
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}

Speak = Callable[[str], str]
"""Digits to an ordinal or a cardinal in words; raises `LookupError` if the language has none."""


@dataclass(frozen=True, kw_only=True)
class _Context:
    """Rules and words of one language."""

    rules: tuple[tuple[re.Pattern[str], str, re.Pattern[str]], ...]
    """Pattern, reading, and what a text must contain for the pattern to be tried."""
    words: Mapping[str, str]
    units: Mapping[str, str]
    abbreviations: Mapping[str, str]


def separate_fractions(text: str) -> str:
    """Turn `1½` into `1 1/2` and `5²` into `5^2`, which NFKC would join to 11/2 and 52."""
    text = _POWER.sub(lambda match: f"^{unicodedata.digit(match[0])}", text)
    return _FRACTION.sub(lambda match: (match[1] and match[1] + " ") + unicodedata.normalize("NFKC", match[2]), text)


def digit_names(language: str) -> list[str]:
    """Return the names of 0 to 9 in a language without other words for numbers; empty for the rest."""
    return str(_load_rules()["digits"].get(language, "")).split()


def rewrite(text: str, language: str, *, ordinal: Speak, cardinal: Speak) -> str:
    """Replace the contexts of numbers by words; what the language has no words for stays as it is."""
    context = _context(language)
    readers: dict[str, Speak] = {
        "": str, "digits": lambda group: " ".join(filter(str.isalnum, group)).upper(), "roman": _roman,
        "joined": lambda group: "".join(filter(str.isdecimal, group)), "ordinal": ordinal, "cardinal": cardinal,
        "word": lambda group: context.words[group],
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


def _read(match: re.Match[str], *, reading: str, context: _Context, readers: Mapping[str, Speak]) -> str:
    """Return the reading of a rule's match, or the matched text if a word is missing."""
    if reading in _FUNCTIONS:
        return _FUNCTIONS[reading](match, context)
    try:
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
    return re.sub("[./@_?=&-]", lambda sign: f" {context.words[sign[0]]} ", plain)


def _measure(match: re.Match[str], context: _Context) -> str:
    """Return a number with its unit, and the unit that it is per: `5 kilometers per hour`."""
    name = context.units["_".join(match[2].split())]
    singular, _, plural = name.replace("*", "").partition("|")
    is_feminine = singular.endswith("e") and not singular.endswith(("mpere", "säule"))  # German units
    article = context.words["one" if is_feminine else "a"]
    spoken = f"{article} {singular}" if match[1] == "1" else f"{match[1]} {plural or name.replace('*', 's')}"
    return spoken + (_per(match, context) if match[3] else "")


def _compound(match: re.Match[str], context: _Context) -> str:
    """Return a number with its unit in the singular, as before a noun: `100 kilometer` of `100-km race`."""
    return f"{match[1]} {_singular(context.units['_'.join(match[2].split())])}"


def _per(match: re.Match[str], context: _Context) -> str:
    """Return the reading of the last group, a unit after a slash: ` per hour`."""
    return f" {context.words['per']} {_singular(context.units[match[match.re.groups]])}"


def _singular(name: str) -> str:
    """Return the singular of a unit's entry: `foot` of `foot|feet`, `meter` of `meter*`."""
    return name.replace("*", "").partition("|")[0]


def _abbreviation(match: re.Match[str], context: _Context) -> str:
    """Spell out an abbreviation; at the end of a sentence its full stop stays. `St.` is Saint before a capital."""
    word, before_capital, at_end = match.groups()
    spoken = context.abbreviations.get("".join(word.split())) or ("Saint" if before_capital else "Street")
    touches = match.string[match.end() :][:1].isalpha()
    ends = at_end is not None or (spoken[-1] == "." and before_capital)
    return spoken.removesuffix(".") + ("." if ends else " " if touches else "")


_FUNCTIONS = {
    "measure": _measure,
    "compound": _compound,
    "per": _per,
    "address": _address,
    "abbreviation": _abbreviation,
}


@lru_cache
def _context(language: str) -> _Context:
    tree = _load_rules()
    own = tree[language]
    months = own.get("months", "").split()
    units, abbreviations = _table(own.get("units", "")), _table(own.get("abbreviations", ""))
    at_start = {_capitalised(key): _capitalised(words) for key, words in abbreviations.items()}
    numbered = {str(i): month for i, month in enumerate(months, 1)}
    patterns = tree["patterns"] | {
        "months": "|".join(months),
        "units": _any_of(units).replace("_", r"\s"),
        "abbreviations": _any_of(abbreviations).replace(r"\.", r"\.\s?"),
        "abbreviations_at_start": _any_of(at_start).replace(r"\.", r"\.\s?"),
    }
    rules = [rule for entry in own["rules"] for rule in (tree[entry]["rules"] if isinstance(entry, str) else [entry])]

    def compiled(pattern: str, reading: str, needed: str = "[0-9]") -> tuple[re.Pattern[str], str, re.Pattern[str]]:
        expanded = re.sub(r"\{([a-z_]+)\}", lambda name: patterns[name[1]], pattern)
        return re.compile(expanded), reading, re.compile(needed)

    return _Context(
        rules=tuple(compiled(*rule) for rule in rules),
        words=_table(own.get("words", "")) | numbered | {month[:3]: month for month in months},
        units=units, abbreviations=at_start | abbreviations,
    )


@lru_cache
def _load_rules() -> dict[str, Any]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return dict(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # libyaml takes a tenth of the time


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(entries: str) -> dict[str, str]:
    """Parse `key words;key words`."""
    return dict(entry.strip().split(" ", 1) for entry in entries.split(";") if entry)


def _any_of(keys: Mapping[str, str]) -> str:
    return "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
