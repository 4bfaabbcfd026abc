"""Splitting of a text into sentences, and of long ones into clauses and words; questions that fall."""

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise

from xtts.shared.text.abbreviations import load_abbreviations
from xtts.shared.text.pronunciation import INLINE_PHONEMES
from xtts.trainer.speech.documents import BULLET, join_lines

_CLOSING = "[\"')\\]\u2019\u201d\u00bb\u300d\u300f\u300b\uff09]*"
_CLAUSE, _WIDE_CLAUSE = ",;:\u060c\u061b\u055d\u1363\u1364\u104a\u17d4", "\uff0c\u3001\uff1b\uff1a"
"""Marks within a sentence, with Khmer's at its end; no space follows the wide ones of Chinese and Japanese."""
_BREAKS = (rf"[{_CLAUSE}]{_CLOSING}\s+|[{_WIDE_CLAUSE}]{_CLOSING}\s*|\s+[-\u2013\u2014]+\s+", r"\s+")
"""Ends of the pieces of a sentence that is too long: clauses, then words."""
_AROUND = 40
"""Letters before and behind a full stop that show whether it ends a sentence."""
_INSIDE_NUMBER = re.compile(r"(?<=\d\S)(?=\d)")
_QUESTION_WORDS = {
    "en": "who whom whose what where why which how",
    "de": "wer wen wem wessen was wann wie wo woher wohin warum weshalb weswegen wieso womit wofür wovon worauf woran"
    " worin worüber worum wozu wodurch wonach welche welcher welches welchen welchem",
}
_BEFORE_THEM = {
    "en": "and but so then or about at by for from in of on since to until with",
    "de": "und aber also denn oder an auf aus bei bis für gegen in mit nach ohne seit über um von vor zu",
}
_CLAUSE_STARTS = {"en": "^|[.!?…:,;\"“]", "de": "^|[.!?…:\"„»]"}
"""Beginnings of clauses that may ask. A German one after a comma reports: `Weißt du, wo er ist?`"""


def split_sentences(text: str, language: str) -> list[str]:
    """Split a text into sentences and lines, list items without their bullets."""
    lines = [BULLET.sub("", line, count=1) if BULLET.match(line) else line for line in join_lines(text).splitlines()]
    sentences = [s.strip() for line in lines for s in _cut_at(line, lambda plain: sentence_ends(plain, language))]
    return [*filter(None, sentences)]


def split_text(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Split a sentence into clauses, else words, that fit or are a single character or phoneme."""
    text = text.strip()
    if not text:
        return []
    if fits(text) or len(units := units_of(text)) == 1:
        return [text]
    for pattern in _BREAKS:
        clauses = _cut_at(text, lambda plain: [match.end() for match in re.finditer(pattern, plain)])  # noqa: B023
        if len(clauses) > 1:
            return [piece for packed in _pack(clauses, fits) for piece in split_text(packed, fits)]
    middle = len(units) // 2
    halves = ("".join(half).replace("]][[", "") for half in (units[:middle], units[middle:]))
    return [piece for half in halves for piece in split_text(half, fits)]


def units_of(text: str) -> list[str]:
    """Split a text into characters and phonemes, each phoneme in brackets of its own."""
    phonemes = INLINE_PHONEMES.sub(lambda match: "".join(f"[[{phoneme}]]" for phoneme in match[1]), text)
    return re.findall(r"(?s)\[\[[^\[\]]\]\]|.", phonemes)


def _cut_at(text: str, ends: Callable[[str], list[int]]) -> list[str]:
    """Cut a text at the offsets that `ends` returns for it with letters in place of inline phonemes."""
    text = INLINE_PHONEMES.sub(lambda match: match[0].replace(" ", "]] [["), text)
    plain = INLINE_PHONEMES.sub(lambda match: "X" * len(match[0]), text)
    return [text[start:end] for start, end in pairwise([0, *ends(plain), len(text)]) if start < end]


def sentence_ends(text: str, language: str) -> list[int]:
    """Offset of the end of each sentence, with the white space after it; none is between two digits.

    In English and German an abbreviation within a sentence ends none.
    """
    from sentencex import segment

    # 1.0.32 panics at the wide space of CJK between an initial and a full stop.
    sentences = segment(language, "".join(" " if c.isspace() and c != "\n" else c for c in text))
    ends = [end for end in accumulate(map(len, sentences)) if not _INSIDE_NUMBER.match(text, end)]
    if abbreviations := load_abbreviations(language):
        return [
            end for end in ends
            if not abbreviations.ends_no_sentence(text[max(end - _AROUND, 0) : end], text[end : end + _AROUND])
        ]
    return ends


def _pack(clauses: list[str], fits: Callable[[str], bool]) -> Iterator[str]:
    """Join neighbours while they fit."""
    packed = clauses[0]
    for clause in clauses[1:]:
        if fits((packed + clause).strip()):
            packed += clause
        else:
            yield packed
            packed = clause
    yield packed


def with_falling_questions(text: str, language: str) -> str:
    """Return the text with a full stop for the mark of each question that a question word asks, in English and German.

    These fall like statements; what a voice has learned of the mark is the rise of the others, which keep it.
    """
    if language not in _QUESTION_WORDS:
        return text
    words, before = ("|".join(table[language].split()) for table in (_QUESTION_WORDS, _BEFORE_THEM))
    asked = rf"(?:{words})\s[^.!?…]*"
    if language == "en":  # `When you go, can I come?` rises
        asked += r"|when\s[^.!?…,;]*"
    question = rf"((?:{_CLAUSE_STARTS[language]})\W*(?:(?:{before})\s){{0,2}}(?:{asked}))\?"
    return re.sub(question, r"\1.", text, flags=re.IGNORECASE | re.MULTILINE)
