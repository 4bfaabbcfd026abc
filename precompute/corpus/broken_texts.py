"""Faulty texts: a wrong encoding, HTML, escapes, language tags."""

import re
from html.entities import name2codepoint
from pathlib import Path

from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_CONTINUATION = (
    "[\u0080-\u009f\u00a1-\u00aa\u00ac-\u00b1\u00b4-\u00ba\u00bc-\u00bf"
    "\u20ac\u201a\u0192\u201e\u2020-\u2022\u02c6\u2030\u0160\u0152\u017d\u02dc\u2122\u0161\u0153\u017e\u0178]"
)
"""Bytes 0x80 to 0xBF in Latin-1 and Windows-1252, without the quotes and dashes that may follow a letter."""
_AGAIN = "export the list again as UTF-8"
_FAULTS = {
    # Two bytes in UTF-8: the first is Â to Å of Latin letters, Î to Ñ of Greek and Cyrillic, Ø to Û of Arabic ones.
    # Quotes begin with â€.
    "UTF-8 decoded as Latin-1": (
        re.compile(
            rf"[\u00c2-\u00c5]{_CONTINUATION}|[\u00c2\u00c3][\u00b2\u00b3]|(?:[\u00ce-\u00d1\u00d8-\u00db]{_CONTINUATION}){{2}}"
            "|(?<=[a-z])[\u00c4\u00c5][\u2026\u203a]|(?:^|(?<= ))\u00c3\u00a0|\u00e2\u20ac"
        ), _AGAIN,
    ),
    "an 8-bit encoding decoded as Latin-1": (re.compile(r"[\u00c0-\u00ff]{3,}[ ,]+[\u00c0-\u00ff]{3,}"), _AGAIN),
    "a replacement character (U+FFFD)": (re.compile("\ufffd"), _AGAIN),
    "an HTML entity": (
        re.compile(
            rf"&(?:(?:{'|'.join(name2codepoint)}|#[0-9]{{2,5}}|#x[0-9a-fA-F]{{2,5}});|(?:amp|nbsp|lt|gt|quot|apos)\b)"
        ),
        "unescape it (Python: html.unescape)",
    ),
    "a language tag": (
        re.compile(r"^\[([A-Za-z]{2})\].*\[\1\]"), "remove the tags and give the language in a column",
    ),
    "an HTML tag": (re.compile(r"</?(?:br|p|i|b|u|em|strong|span|speak)\b[^>]*>", re.IGNORECASE), "remove the tags"),
    "an escape sequence": (re.compile(r"\\u[0-9a-fA-F]{4}|\\[nrt\"]"), "write the character that it stands for"),
}  # fmt: skip
"""What is wrong with a text: what shows it, and what to do."""
_SIGNS = frozenset("&[<\\")
"""What broken texts of ASCII have."""


def check_text(clip: Clip, data: Path) -> Clip:
    """The clip; a `LockstepError` where its text is broken. data: its corpus."""
    if not clip.text.isascii() or not _SIGNS.isdisjoint(clip.text):
        for fault, (pattern, fix) in _FAULTS.items():
            if found := pattern.search(clip.text):
                shown = f"{found[0]!r} in clip {clip.id}, {clip.text[:60]!r}"
                raise LockstepError(str(data), found=f"{fault}: {shown}", expected="plain text", fix=fix)
    return clip
