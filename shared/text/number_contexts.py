"""What stands around numbers, rewritten so that they can be read: `5 km/h` becomes `5 kilometers per hour`.

The rules are in `number_contexts.yaml`: English and German have them for dates, times, phone numbers, addresses,
ranges, units, money, Roman numerals, abbreviations and signs; other languages for dates, times and ordinals. Digits
stay where the readers of numbers (`text_normalization`, `number_words`) say them as they should.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import yaml

_VULGAR = re.compile("([0-9]?)([\u00bc-\u00be\u2150-\u215e])")
_POWER = re.compile("(?<=[0-9])[\u00b2\u00b3]")
_GROUP = re.compile(r"\{([0-9])(?::([a-z]+))?\}")
"""A group of a pattern in its reading: `{1}`, `{1:ordinal}`."""
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_WITH_POINT = frozenset("cs da et fi hr hu is lv nb no pl sk sl sr tr".split())
"""Languages in which `3. maj` is an ordinal."""

Speak = Callable[[str], str]
"""An ordinal or a cardinal in words; a `LookupError` where the language has none."""


@dataclass(frozen=True, kw_only=True)
class _Context:
    """The rules of one language."""

    rules: tuple[tuple[re.Pattern[str], str, re.Pattern[str]], ...]
    """Pattern, reading, and what a text must have for the pattern to be looked for."""
    words: Mapping[str, str]
    units: Mapping[str, str]
    abbreviations: Mapping[str, str]


def part_fractions(text: str) -> str:
    """`1½` as `1 1/2` and `5²` as `5^2`, before anything else joins them."""
    text = _POWER.sub(lambda found: f"^{unicodedata.digit(found[0])}", text)
    return _VULGAR.sub(lambda found: (found[1] and found[1] + " ") + unicodedata.normalize("NFKC", found[2]), text)


def digit_names(language: str) -> list[str]:
    """Those of 0 to 9, where a language has no other words for numbers here; empty elsewhere."""
    return str(_tree()["digits"].get(language, "")).split()


def rewrite(text: str, language: str, *, ordinal: Speak, cardinal: Speak) -> str:
    """The text with what stands around its numbers in words; what a number has no word for stays as it is."""
    context = _context(language)
    readers: dict[str, Speak] = {
        "": str, "digits": lambda group: " ".join(filter(str.isalnum, group)), "roman": _roman, "ordinal": ordinal,
        "cardinal": cardinal, "word": lambda group: context.words[group],
    }  # fmt: skip
    has = dict[str, bool]()  # what rules need, looked for once: most texts have none of it
    for pattern, reading, needed in context.rules:
        if needed.pattern not in has:
            has[needed.pattern] = needed.search(text) is not None
        if has[needed.pattern]:
            changed = pattern.sub(partial(_read, reading=reading, context=context, readers=readers), text)
            if changed != text:
                text, has = changed, {}
    return text


def _read(found: re.Match[str], *, reading: str, context: _Context, readers: Mapping[str, Speak]) -> str:
    """The reading of what a rule found; without one, the text as it is."""
    if reading in _FUNCTIONS:
        return _FUNCTIONS[reading](found, context)
    try:
        return _GROUP.sub(lambda group: readers[group[2] or ""](found[int(group[1])] or ""), reading)
    except LookupError:
        return found[0]


def _roman(number: str) -> str:
    """Its value in digits: `44` for `XLIV`."""
    values = [_ROMAN_DIGITS[letter] for letter in number]
    return str(sum(-one if one < max(values[i:]) else one for i, one in enumerate(values)))


def _address(found: re.Match[str], context: _Context) -> str:
    plain = found[1].replace("www.", "w w w.", 1)
    return re.sub("[./@_-]", lambda sign: f" {context.words[sign[0]]} ", plain)


def _measure(found: re.Match[str], context: _Context) -> str:
    """A number with its unit, and the unit that it is per: `5 kilometers per hour`."""
    name = context.units["_".join(found[2].split())]
    one, _, many = name.replace("*", "").partition("|")
    is_feminine = one.endswith("e") and not one.endswith(("mpere", "säule"))  # of German units
    single = f"{context.words['one' if is_feminine else 'a']} {one}"
    spoken = single if found[1] == "1" else f"{found[1]} {many or name.replace('*', 's')}"
    return spoken + (_per(found, context) if found[3] else "")


def _per(found: re.Match[str], context: _Context) -> str:
    """The last group, a unit behind a slash: ` per hour`."""
    name = context.units[found[found.re.groups]]
    return f" {context.words['per']} {name.replace('*', '').partition('|')[0]}"


def _abbreviation(found: re.Match[str], context: _Context) -> str:
    """In full; the full stop stays at the end of a sentence. `St.` is a saint before a capital, else a street."""
    word, before_capital, at_end = found.groups()
    spoken = context.abbreviations.get("".join(word.split())) or ("Saint" if before_capital else "Street")
    touches = found.string[found.end() :][:1].isalpha()
    ends = at_end is not None or (spoken[-1] == "." and before_capital)
    return spoken.removesuffix(".") + ("." if ends else " " if touches else "")


_FUNCTIONS = {"measure": _measure, "per": _per, "address": _address, "abbreviation": _abbreviation}


@lru_cache
def _context(language: str) -> _Context:
    tree = _tree()
    own = tree.get("nb" if language == "no" else language) or tree["no_months"]
    months = own.get("months", "").split()
    units, abbreviations = _table(own.get("units", "")), _table(own.get("abbreviations", ""))
    numbered = {str(number): month for number, month in enumerate(months, 1)}
    parts = tree["patterns"] | {
        "months": "|".join(months),
        "units": _any_of(units).replace("_", r"\s"),
        "abbreviations": _any_of(abbreviations).replace(r"\.", r"\.\s?"),
    }
    rules = [*own["rules"], *(tree["point"]["rules"] if language in _WITH_POINT else [])]

    def compiled(pattern: str, reading: str, needed: str = "[0-9]") -> tuple[re.Pattern[str], str, re.Pattern[str]]:
        whole = re.sub(r"\{([a-z_]+)\}", lambda name: parts[name[1]], pattern)
        return re.compile(whole), reading, re.compile(needed)

    return _Context(
        rules=tuple(compiled(*rule) for rule in rules),
        words=_table(own.get("words", "")) | numbered | {month[:3]: month for month in months},
        units=units, abbreviations=abbreviations,
    )  # fmt: skip


@lru_cache
def _tree() -> dict[str, Any]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return dict(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # a tenth of the time


def _table(entries: str) -> dict[str, str]:
    """`key words;key words`."""
    return dict(entry.strip().split(" ", 1) for entry in entries.split(";") if entry)


def _any_of(keys: Mapping[str, str]) -> str:
    return "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
