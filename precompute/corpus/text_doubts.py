"""Doubtful texts: in a wrong encoding, with tags, escapes or marks of other programs; their clips are rejected.

Unambiguous marks are read: the stress and pause marks of other toolchains.
"""

import re
from functools import cache
from html.entities import html5
from pathlib import Path
from typing import get_args

import ftfy
import yaml

from xtts.shared.config import Doubt
from xtts.shared.languages import LANGUAGES

_ARPABET = frozenset(
    "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH SIL".split()
)
_TABLES = ("gbk", "shift_jis", "cp850", "koi8-r", "cp1253", "cp1254", "mac_roman", "iso8859-2")
"""Tables in which UTF-8 is misread, besides those that ftfy knows, and cp866, which box drawing reveals."""
_MISREAD_SHARE, _FEWEST_BYTES = 0.92, 10
"""A word counts as misread if at least this share and count of its bytes are UTF-8: none of the 20,000 most frequent
words of 42 languages does."""
_SUSPICIOUS = re.compile(
    r"[^\x00-\x7f]|[&<>\[\]\\{}%?\x00-\x08\x0e-\x1f\x7f+#]|=[0-9A-F]{2}|^b['\"]|^(?:nan|NaN|None|NULL|N/A)$|^\d{1,2}:\d{2}"
)
"""A quick first check: a text without a match is not doubtful."""
_KINDS = yaml.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), yaml.BaseLoader)
_STRESS = re.compile(r"(?<![\dA-Za-z+])\+([аеёиоуыэюяіїєАЕЁИОУЫЭЮЯІЇЄ])")
"""Russian and Ukrainian stress as RUAccent and Silero write it."""
_STRESSED_WORD = re.compile(
    r"(?<![\w+])(?=(?:\+?[\u0400-\u04ff]){3})[\u0400-\u04ff]*\+[аеёиоуыэюяіїє][\u0400-\u04ff]*(?![\w+])"
)
"""A word that shows that a text has such marks: of three letters or more, unlike a sum of two."""
_PROSODY = re.compile(r"(?<=[\u4e00-\u9fff])#[1-4]")
"""Prosodic boundaries of DataBaker's texts."""


def read_marks(text: str) -> str:
    """Return a text with the marks of other toolchains read: `прив+ет` as `приве́т`, `今天#2` as `今天`."""
    if "+" in text and _STRESSED_WORD.search(text):
        text = _STRESS.sub("\\1\u0301", text)
    return _PROSODY.sub("", text) if "#" in text else text


def text_doubt(text: str) -> tuple[Doubt, str] | None:
    """Return (kind, what was found) if a text is doubtful; None for plain text."""
    if not _SUSPICIOUS.search(text):
        return None
    for kind, pattern in _compiled().items():
        for match in pattern.finditer(text):
            if _is_doubtful(kind, match, text):
                return kind, str(match[0])
        if kind == "encoding" and not text.isascii() and (found := _misread(text)):
            return kind, found
    return None


def fix_of(kind: str) -> str:
    """Return what to do about texts that were rejected for a kind of doubt; empty for other reasons."""
    return str(_KINDS[kind]["fix"]) if kind in _KINDS else ""


@cache
def _compiled() -> dict[Doubt, re.Pattern[str]]:
    return {kind: re.compile("|".join(_KINDS[kind]["patterns"])) for kind in get_args(Doubt)}


def _is_doubtful(kind: Doubt, match: re.Match[str], text: str) -> bool:
    """Whether what a pattern found is one: an entity or a language that exists, a phone, no path of Windows."""
    found = match[0]
    if kind == "entity":
        return "#" in found or not found.endswith(";") or found[1:] in html5
    if kind == "language tag":
        return (match[1] or match[2]).lower() in LANGUAGES
    if kind == "phonemes":
        phones = found.strip("{}").split()
        return any(phone[-1].isdigit() for phone in phones) or all(phone in _ARPABET for phone in phones)
    if kind == "escape":
        word = text[: match.start()].rpartition(" ")[2]
        return not re.match(r"[\"'(]?[A-Za-z]:$|[\"'(]?[A-Za-z]:\\|\\\\", word)
    return True


def _misread(text: str) -> str:
    """Return a word that is UTF-8 in a wrong table, or one of several in an 8-bit table for another; empty for none."""
    if ftfy.badness.is_bad(text) and ftfy.fix_encoding(text) != text:
        return text[:20]
    words = re.findall(r"[^\x00-\x7f]{2,}", text)
    for table in _TABLES:
        misread = [word for word in words if _is_misread(word, table)]
        if 2 * sum(map(len, misread)) > sum(map(len, words)):
            return str(misread[0])
    return ""


def _is_misread(word: str, table: str) -> bool:
    try:
        encoded = word.encode(table)
    except UnicodeEncodeError:
        return False
    utf8 = encoded.decode("utf-8", "ignore").encode()
    return len(utf8) >= _MISREAD_SHARE * max(_FEWEST_BYTES, len(encoded))
