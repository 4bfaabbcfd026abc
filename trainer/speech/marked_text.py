"""Pauses and SSML in a text to speak: passages without a pause, each with the silence after it.

Pauses are `[pause:0.5s]`, `[pause:300ms]` and `<break>`; `<s>` and `<p>` separate sentences and paragraphs. `<phoneme>`
is spoken as `[[ipa]]`, `<sub>` as its alias. Other tags are skipped and named in a warning.
"""

import html
import re
from dataclasses import dataclass, field

from xtts.shared.errors import LockstepError
from xtts.trainer.speech.documents import read_document

SENTENCE_PAUSE = 0.15
"""Seconds of silence between two sentences or lines, in addition to the silence that the model speaks at their ends."""
_SEPARATORS = {
    **dict.fromkeys("s li br td th tr dt dd div caption figcaption".split(), SENTENCE_PAUSE),
    **dict.fromkeys("p h1 h2 h3 h4 h5 h6 section article blockquote pre header footer table".split(), 0.5),
}
"""Seconds of silence after the end of a marked sentence, list item, cell, line, heading or paragraph."""
_SILENT = ("", *"speak ul ol dl html body main nav thead tbody a img code small sup label".split(), *_SEPARATORS)
"""Tags without a sound of their own; an empty name is a comment."""
_WITHIN_WORDS = frozenset("a b code em emphasis i prosody say-as small span strong sup u".split())
"""Tags that may begin within a word; all others end a word."""
_STRENGTHS = {"none": 0.0, "x-weak": 0.1, "weak": 0.2, "medium": 0.4, "strong": 0.7, "x-strong": 1.0}
"""Seconds of a `<break>` by its strength."""
_MOST_SECONDS = 10.0
"""Longest pause, as in the SSML of the large services."""

_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>/]+)""")
_ATTRIBUTES = rf"(?:\s+{_ATTRIBUTE.pattern.replace('(', '(?:')})*\s*"
_TAG = rf"<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*)(?P<attributes>{_ATTRIBUTES})(?P<empty>/?)>"
_MARK = re.compile(
    r"\[pause:(?P<pause>[^\]]*)\]|(?P<comment><!--.*?-->|<\?.*?\?>|<!doctype[^>]*>"
    r"|<(?P<unseen>head|script|style)\b.*?</(?P=unseen)\s*>)"
    rf"|<(?P<element>phoneme|sub)(?P<options>{_ATTRIBUTES})>(?P<content>.*?)</(?P=element)\s*>"
    rf"|{_TAG}|(?P<broken></?(?:speak|break|phoneme|sub)\b.{{,20}})",
    re.DOTALL | re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
_TIME = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?P<unit>ms|s)\s*", re.IGNORECASE)
_WIDE = "\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
_WORD = re.compile(rf"(?:\[\[[^\]]*\]\]|[^\s{_WIDE}])+[{_WIDE}]*\s*|[{_WIDE}]+\s*|\s+")
"""A word with the marks and the white space after it; wide marks end a word without a space."""

Words = list[tuple[str, str]]
"""(as written, as spoken) of each word, with the white space after it."""


@dataclass(kw_only=True)
class Passage:
    """Words without a marked pause between them; no words for a pause at the beginning of a text."""

    words: Words = field(default_factory=list)
    pause: float = 0.0
    """Seconds of silence after it."""

    @property
    def spoken(self) -> str:
        """The text to speak."""
        return "".join(spoken for _, spoken in self.words)


def read_passages(text: str, location: str, *, phonemes: bool) -> tuple[list[Passage], list[str]]:
    """Split a text into passages: (passages, warnings). A text without marks is one passage; `a < b` is not a mark.

    Entities such as `&amp;` are resolved. location: origin of the text, for messages; phonemes:
    whether the voice can speak `[[ipa]]`, otherwise `<phoneme>` is an unknown tag.

    Raises:
        LockstepError: A pause has no usable length, or a tag of SSML does not end.
    """
    text, passages, unknown, end = read_document(text), [Passage()], dict[str, None](), 0
    for mark in _MARK.finditer(text):
        unmarked, name = _plain(text[end : mark.start()]), (mark["name"] or "").lower()
        _add(passages, unmarked, unmarked)
        end = mark.end()
        if mark["broken"]:
            raise LockstepError(location, found=f"an unclosed tag: {mark['broken']}", expected="<NAME ...>")
        if mark["element"]:
            written = " ".join(_plain(re.sub(_TAG, "", mark["content"])).split())
            if not (spoken := _alias(mark["element"].lower(), _attributes(mark["options"]), phonemes=phonemes)):
                unknown[mark["element"].lower()] = None
            _add(passages, written or spoken, spoken or written)
            continue
        if mark["pause"] is not None:
            passages[-1].pause += _seconds(mark["pause"], location)
        elif name == "break":
            passages[-1].pause += _break_seconds(_attributes(mark["attributes"]), location)
        elif name in _SEPARATORS and (mark["close"] or name == "br"):
            passages[-1].pause = max(passages[-1].pause, _SEPARATORS[name])
        elif name not in _SILENT:
            unknown[name] = None
        if not mark["close"] and name not in _WITHIN_WORDS:
            _add(passages, " ", " ")
    _add(passages, _plain(text[end:]), _plain(text[end:]))
    tags = ", ".join(f"<{name}>" for name in unknown)
    return passages, [f"{location}: skipped SSML tags that this voice does not know: {tags}"] if unknown else []


def _plain(text: str) -> str:
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)


def _add(passages: list[Passage], written: str, spoken: str) -> None:
    """Add words, to a new passage after a pause; text that touches the last word is joined to it."""
    passage, words = passages[-1], [(written, spoken)]
    if passage.pause and written.strip():
        passages.append(passage := Passage())
    if written == spoken:
        words = [(word, word) for word in _WORD.findall(written)]
    for i, (word, reading) in enumerate(words):
        touches = passage.words and not (i or passage.words[-1][0][-1].isspace())
        if touches or (passage.words and word.isspace()):
            passage.words[-1] = (passage.words[-1][0] + word, passage.words[-1][1] + reading)
        elif not word.isspace():
            passage.words.append((word, reading))


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): html.unescape(value.strip("\"'")) for name, value in _ATTRIBUTE.findall(text)}


def _alias(element: str, attributes: dict[str, str], *, phonemes: bool) -> str:
    """Return what is spoken instead of an element's words; empty if the words are."""
    if element == "sub":
        return attributes.get("alias", "").strip()
    ipa = attributes.get("ph", "").strip() if phonemes and attributes.get("alphabet", "ipa").lower() == "ipa" else ""
    return f"[[{ipa}]]" if ipa else ""


def _break_seconds(attributes: dict[str, str], location: str) -> float:
    if "time" in attributes:
        return _seconds(attributes["time"], location)
    if (strength := attributes.get("strength", "medium").lower()) not in _STRENGTHS:
        raise LockstepError(location, found=f"a break of strength {strength!r}", expected=" or ".join(_STRENGTHS))
    return _STRENGTHS[strength]


def _seconds(time: str, location: str) -> float:
    match = _TIME.fullmatch(time)
    seconds = float(match["number"]) / (1000 if match["unit"].lower() == "ms" else 1) if match else -1.0
    if not 0 <= seconds <= _MOST_SECONDS:
        expected = f"0.5s or 300ms, at most {_MOST_SECONDS:g}s"
        raise LockstepError(location, found=f"a pause of {time.strip()!r}", expected=expected)
    return seconds
