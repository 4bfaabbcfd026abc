# ruff: noqa: RUF001 - letters and marks of many scripts look like others
"""Spelling of a text with the symbols of a table, language by language, and the alphabet that a corpus needs.

English is folded to a to z. In every other language nothing is stripped: letters are composed (NFC) and lower-cased by
the language's own rule, marks stay, Hangul syllables become jamo, Mandarin becomes pinyin and Japanese kana.
"""

import re
import unicodedata
from collections.abc import Iterable

from xtts.shared.languages import MANDARIN
from xtts.shared.text.language_tables import load_table
from xtts.shared.text.number_words import name_digits
from xtts.shared.text.readings import TONES, kana_reading, pinyin
from xtts.shared.text.scripts import JOINERS, is_letter, plain_letters, script_of

PUNCTUATION = "!'\"(),-.:;?"

BY_READING = (*MANDARIN, "ja")
"""Languages spelled by their reading: pinyin or kana."""

_TYPOGRAPHY, _PLAIN_MARKS = (
    str.maketrans({mark: plain for plain, marks in load_table("marks")[name].items() for mark in marks})
    for name in ("english", "marks")
)
_GREEK_MARKS = str.maketrans({";": "?", "\u00b7": ";"})
_DOTTED_I = str.maketrans({"I": "ı", "İ": "i"})
_SYLLABLES, _JAMO = re.compile("[\uac00-\ud7a3]+"), re.compile("[\u1100-\u11ff]+")


def fold_english(text: str) -> str:
    """Return the text in lower case, with plain quotes and dashes, no accents and single spaces."""
    text = unicodedata.normalize("NFKC", text).lower().translate(_TYPOGRAPHY)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(text.split())


def plain_punctuation(text: str, language: str) -> str:
    """Replace the punctuation of every script by that of `PUNCTUATION`."""
    text = unicodedata.normalize("NFC", text)
    return (text.translate(_GREEK_MARKS) if language == "el" else text).translate(_PLAIN_MARKS)


def lower_case(text: str, language: str) -> str:
    """Return composed lower-case letters, plain punctuation and single spaces; nothing visible is stripped."""
    text = plain_punctuation(plain_letters(text, language), language)
    if language in ("tr", "az"):
        text = text.translate(_DOTTED_I)
    text = unicodedata.normalize("NFC", text.lower())
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf" or c in JOINERS)
        text = _SYLLABLES.sub(lambda match: unicodedata.normalize("NFD", match[0]), text)
    return " ".join(text.split())


def spell(text: str, language: str) -> str:
    """Spell a text as the tokenizers `characters` and `bpe` do, before characters outside their table are dropped."""
    if language == "en":
        return fold_english(text)
    text = name_digits(text, language)
    if language in MANDARIN:
        return pinyin(lower_case(text, language))
    return kana_reading(lower_case(text, language)) if language == "ja" else lower_case(text, language)


def compose_jamo(text: str) -> str:
    """Join jamo into syllables again, for reading."""
    return _JAMO.sub(lambda match: unicodedata.normalize("NFC", match[0]), text)


def alphabet(texts: Iterable[str], language: str) -> set[str]:
    """Return the symbols besides punctuation that spell the texts of one language.

    Those of Mandarin include the tones; characters without a reading are dropped in Mandarin and Japanese.
    """
    spelled = set[str]()
    for text in texts:
        spelled.update(spell(text, language))
    letters = {c for c in spelled if is_letter(c) and not (language in BY_READING and script_of(c) == "CJK")}
    return letters | set(TONES) if language in MANDARIN else letters


def join_surrogates(text: str) -> str:
    """Join surrogate pairs, and drop lone halves, as from an emoji that a client cut."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
