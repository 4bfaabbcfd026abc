"""Splits long text into pieces that fit: at the ends of sentences, else clauses, else words, else anywhere."""

import re
from collections.abc import Callable, Iterator

_CLOSING = "[\"')\\]\u2019\u201d\u00bb\u300d\u300f\u300b\uff09]*"
_SENTENCE = ".!?\u2026\u061f\u06d4\u0964\u0965\u0589\u1362\u1367\u17d4\u104b"
"""Marks that end a sentence before a space: Latin, Arabic, Urdu, Indian, Armenian, Ethiopic, Khmer, Burmese."""
_CLAUSE = ",;:\u060c\u061b\u055d\u1363\u1364\u104a"
_WIDE_SENTENCE, _WIDE_CLAUSE = "\u3002\uff61\uff0e\uff01\uff1f", "\uff0c\u3001\uff1b\uff1a"
"""Marks of Chinese and Japanese, which no space follows."""
_BREAKS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"[{_SENTENCE}]+{_CLOSING}\s+|[{_WIDE_SENTENCE}]+{_CLOSING}\s*|\n\s*\n",
        rf"[{_CLAUSE}]{_CLOSING}\s+|[{_WIDE_CLAUSE}]{_CLOSING}\s*|\s+[-\u2013\u2014]+\s+|\n",
        r"\s+",
    )
)


def split_text(text: str, fits: Callable[[str], bool], short: Callable[[str], bool] | None = None) -> list[str]:
    """Ordered pieces of `text` that each fit or are a single character; one piece if the whole text fits.

    Neighbouring sentences of a longer text are joined while they are together `short`, by default while they fit.
    """
    text = text.strip()
    if not text:
        return []
    if fits(text) or len(text) == 1:
        return [text]
    for pattern in _BREAKS:
        parts = list(_cut(text, pattern))
        if len(parts) > 1:
            joined = _pack(parts, short if short and pattern is _BREAKS[0] else fits)
            return [piece for part in joined for piece in split_text(part, fits, short)]
    middle = len(text) // 2
    return split_text(text[:middle], fits) + split_text(text[middle:], fits)


def _cut(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    start = 0
    for found in pattern.finditer(text):
        if text[start : found.end()].strip():
            yield text[start : found.end()]
            start = found.end()
    if text[start:].strip():
        yield text[start:]


def _pack(parts: list[str], fits: Callable[[str], bool]) -> Iterator[str]:
    """Join neighbours while they fit: fragments such as "Mr." or "Yes." are not spoken alone."""
    packed = parts[0]
    for part in parts[1:]:
        if fits((packed + part).strip()):
            packed += part
        else:
            yield packed
            packed = part
    yield packed
