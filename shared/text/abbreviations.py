"""Abbreviations of English and German by what follows them, from the tables in `grammars/`.

They are spelled out where a text is read, and looked up where it is cut into sentences.
"""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache

from xtts.shared.text.language_tables import load_table, load_units

_POINTED, _LAST, _CAPITAL, _NUMBER, _INSIDE, _AFTER_NAME, _AT_START, _AT_END = (
    re.compile(load_table("abbreviations")[name])
    for name in ("pointed", "last", "capital", "number", "inside", "after_name", "at_start", "at_end")
)
_BEHIND_NUMBER, _VOWEL = re.compile(r"[0-9\u00bc-\u00be]\s?$"), re.compile("[aeiouyäöü]", re.IGNORECASE)
_AROUND = 40  # letters before and behind an abbreviation that decide its reading


@dataclass(frozen=True, kw_only=True)
class Abbreviations:
    """Abbreviations of a language by class; `grammars/en.yaml` describes the classes."""

    classes: dict[str, dict[str, str]]
    bare: re.Pattern[str]
    """What needs no point."""
    units: Container[str]
    """Symbols that are units behind a number."""
    starter: re.Pattern[str]
    """A word that begins sentences, after white space."""

    def spell_out(self, text: str) -> str:
        """Replace abbreviations by their words; the point of one that ends a sentence stays."""
        read, done = list[str](), 0
        while match := _POINTED.search(text, done):
            words, end = self._longest(text, match.start(), match.end())
            read += [text[done : match.start()], words]
            done = end
        text = "".join([*read, text[done:]])
        return self.bare.sub(lambda match: self._bare(match[0], text[match.end() :][:_AROUND]), text)

    def ends_no_sentence(self, before: str, after: str) -> bool:
        """Whether `before` ends with an abbreviation in a sentence, known or before a small letter or a number."""
        if (match := _LAST.search(before)) is None or _AT_END.match(after):
            return False
        key = match["key"].replace(". ", ".")
        if self._reading(key, before[: match.start("key")], f" {after}")[0]:
            return not self.starter.match(f" {after}")
        short = len(key) <= 2 or not _VOWEL.search(key)
        return (short and after[:1].isdecimal()) or ((short or len(key) <= 5) and after[:1].islower())

    def _longest(self, text: str, start: int, end: int) -> tuple[str, int]:
        """Return (words, end) of the longest abbreviation at `start`; else the text of its first part."""
        before, whole = text[max(start - _AROUND, 0) : start], text[start:end]
        if ". " in whole and whole.replace(". ", " ") in self.units and _BEHIND_NUMBER.search(before):
            return text[start:end], end
        while True:
            after = text[end + 1 : end + 1 + _AROUND]
            words, ends = self._reading(text[start:end].replace(". ", "."), before, after)
            shorter = text.rfind(".", start, end)
            if words or shorter < 0:
                gap = "." if ends else " " if after[:1].isalnum() else ""
                return (words + gap if words else text[start : end + 1]), end + 1
            end = shorter

    def _reading(self, key: str, before: str, after: str) -> tuple[str, bool]:
        """Return the words for an abbreviation before its point, if it has any, and whether a sentence ends there."""
        is_number = key in self.classes["number"] and _NUMBER.match(after)
        if key in self.units and _BEHIND_NUMBER.search(before) and not is_number:
            return "", False
        at_end, plain = _AT_END.match(after) is not None, key[:1].lower() + key[1:]
        follows = {
            "street": self._is_street(key, before, after), "number": _NUMBER.match(after),
            "name": not at_end and _CAPITAL.match(after), "inside": _INSIDE.match(after), "word": True,
        }
        for name, is_followed in follows.items():
            words = self.classes[name].get(key, "")
            if not words and _AT_START.search(before) and (small := self.classes[name].get(plain)):
                words = small[:1].upper() + small[1:]
            if words and is_followed:
                starts = name in ("word", "street") and self.starter.match(after)
                return words.removesuffix("."), bool(at_end or starts or (words[-1] == "." and _CAPITAL.match(after)))
        return "", False

    def _is_street(self, key: str, before: str, after: str) -> bool:
        """Whether a word such as `St` follows a name; `St. Paul` after a sentence's first word is a saint."""
        match = _AFTER_NAME.search(before)
        if match is None or self.starter.match(f" {match['name']}"):
            return False
        return bool(match["inner"]) or key not in self.classes["name"] or not _CAPITAL.match(after)

    def _bare(self, key: str, after: str) -> str:
        for name, pattern in (("number", _NUMBER), ("name", _CAPITAL)):
            if key in self.classes[name] and pattern.match(after):
                return self.classes[name][key] + " " * (not after[:1].isspace())
        return self.classes["bare"].get(key, key)


@lru_cache
def load_abbreviations(language: str) -> Abbreviations | None:
    """Return the abbreviations of a language; None if its table has none by class."""
    table = load_table(language)
    if "starter" not in table.get("patterns", {}):
        return None
    own, starter = table["classes"], re.sub(r"\|\s+", "|", table["patterns"]["starter"])
    classes = own | {"bare": own["bare"] | {key: ".".join(key) for key in own.get("letters", "").split()}}
    bare, pointless = any_of(classes["bare"]), any_of(own["pointless"].split())
    return Abbreviations(
        classes=classes, units=load_units(language),
        bare=re.compile(rf"(?<![\w.@/'\u2019&-])(?:{bare}(?![\w.@/'\u2019-])|{pointless}(?=\s[A-ZÄÖÜ0-9]|[0-9]))"),
        starter=re.compile(rf"\s+[\"'\u201e\u201c]?{starter}"),
    )


def any_of(keys: Iterable[str]) -> str:
    """Return a pattern of any of the keys, the longest first; without keys, of nothing."""
    return f"(?:{'|'.join(map(re.escape, sorted(keys, key=len, reverse=True))) or '(?!)'})"
