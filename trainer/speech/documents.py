"""Documents as lines to speak: Markdown without its marks, and wrapped lines joined."""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

BULLET = re.compile(r"[-*\u2022\u00b7\u2013\u2014]\s+")
"""Start of a list item."""
_MARKDOWN = re.compile(r"(?m)\]\(\S|^\s*(?:```|~~~|#{1,6} \S|>\s[^\W\d_]|\|?\s*:?-{3,}:?\s*\|)|(?<!\w)\*\*\S|`[^`\n]+`")
"""Marks that no other text has."""
_POWER = re.compile(r"(?<=\d)\*\*(?=\d)")
_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""A terminal's escape sequence."""
_SPACES = str.maketrans(dict.fromkeys("\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
_RAISED = re.compile(r"<sup>\s*([0-9]+)\s*</sup>", re.IGNORECASE)
"""A power or the mark of a note."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FORMULA = re.compile(r"\$(?=[A-Za-z\\(]|[^$\n]*[\^=\\])(?!\s)([^$\n]{1,200})(?<!\s)\$(?!\d)")
"""A formula of TeX; `$5 or $6` is money."""
_NUMBERED = re.compile(
    r"(?P<number>[0-9]{1,2})[.)]\s+(?=\S)(?!(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)(?:[a-z]*\b))"
)
"""Start of a numbered item, which no date is."""
_ENDS = re.compile(r"[.!?\u2026:\u3002\uff01\uff1f\u0964\u061f][\"')\]\u2019\u201d\u201c\u00bb]*$")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad]$")
_COMPOUND = re.compile(r"(?:\w-\w+|\b(?:ex|half|ill|self|well))-$")
"""Start of a word that has a hyphen on one line, too."""
_SUSPENDED = re.compile(r"(?:und|oder|bzw|and|or|to)\b")
"""Words after a hyphen that stays, as in `Vor- und Nachteile`."""
_SMALL, _WIDE, _WIDEST = 36, 60, 120
"""Columns of wrapped lines: the fewest of a paragraph, of one with two lines, and the most."""


def read_document(text: str) -> str:
    """Return a text without marks of Markdown, a line for each paragraph; links are their words, entities stay."""
    text = _FORMULA.sub(r"\1", _COLOUR.sub("", text).translate(_SPACES))
    text = _RAISED.sub(lambda raised: raised[1].translate(_SUPERSCRIPTS), text)
    if _MARKDOWN.search(text):
        from markdown_it import MarkdownIt

        reader = (
            MarkdownIt("commonmark")
            .enable("table")
            .disable(["code", "lheading", "html_block", "html_inline", "reference", "entity"])
        )
        text = "".join(_spoken(reader.parse(_POWER.sub(r"\\*\\*", text))))
    return join_lines(text) if "\n" in text.strip() else text


def _spoken(tokens: "Iterable[Token]") -> Iterator[str]:
    for token in tokens:
        if token.children is not None:
            yield from _spoken(token.children)
        elif token.type.endswith("break"):
            yield "\n"
        elif token.type == "list_item_open" and token.info:
            yield f"{token.info}. "
        elif token.type in ("th_close", "td_close"):
            yield ", "
        elif token.block and token.nesting < 0 and not token.hidden:
            yield "\n\n"
        is_code = token.type in ("code_inline", "fence")
        yield "" if token.children is not None else html.escape(token.content) if is_code else token.content


def join_lines(text: str) -> str:
    """Join the lines of a paragraph that was wrapped, and words that were hyphenated; numbers of a list get a colon."""
    lines = [*map(str.rstrip, text.splitlines())]
    numbered = {i: int(match["number"]) for i, line in enumerate(lines) if (match := _NUMBERED.match(line.lstrip()))}
    items = {i for pair in pairwise(numbered) if numbered[pair[1]] == numbered[pair[0]] + 1 for i in pair}
    lines = [_NUMBERED.sub(r"\g<number>: ", line, count=1) if i in items else line for i, line in enumerate(lines)]
    starts = [
        i in items or not line or not previous or BULLET.match(line.lstrip()) is not None
        for i, (previous, line) in enumerate(pairwise(["", *lines]))
    ]
    blocks = groupby(zip(accumulate(starts), lines, strict=True), key=itemgetter(0))
    return "\n".join(line for _, block in blocks for line in _unwrapped([line for _, line in block]))


def _unwrapped(block: list[str]) -> list[str]:
    """Join wrapped lines; in other blocks, only those before a small letter."""
    width, joined = max(map(len, block)), [block[0].lstrip()]
    full = all(len(a) + len(b.split(maxsplit=1)[0]) >= width for a, b in pairwise(block))
    wrapped = full and (_SMALL if len(block) > 2 else _WIDE) <= width <= _WIDEST and _ENDS.search(block[-1])
    for previous, indented in pairwise(block):
        line = indented.lstrip()
        if _SUSPENDED.match(line) and _HYPHENATED.search(previous):
            joined[-1] += f" {line}"
        elif previous and _HYPHENATED.search(previous):
            within = line[0].islower() and not _COMPOUND.search(previous)
            joined[-1] = _HYPHENATED.sub("" if within else "-", joined[-1]) + line
        elif wrapped or (len(previous) >= _SMALL and line[0].islower()):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return joined
