# ruff: noqa: RUF001 - letters and marks of many scripts look like others
"""How a text is written with the symbols of a table, language by language; the alphabet is what a corpus is written in.

English is folded to a to z. In every other language nothing is stripped: letters are composed (NFC) and made small by
the language's own rule, marks stay, Hangul syllables become jamo, Mandarin becomes pinyin and Japanese kana.
"""

import re
import unicodedata
from collections.abc import Iterable

from xtts.shared.languages import MANDARIN
from xtts.shared.text.number_words import digits_by_name
from xtts.shared.text.readings import TONES, kana_reading, pinyin
from xtts.shared.text.scripts import JOINERS, is_letter, script_of

PUNCTUATION = "!'\"(),-.:;?"

BY_READING = (*MANDARIN, "ja")
"""Languages of which the reading is spelled: pinyin or kana."""

_TYPOGRAPHY = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u00b4": "'", "`": "'",
        "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"',
        "\u2013": "-", "\u2014": "-", "\u2212": "-", "[": "(", "]": ")",
        "\u00df": "ss", "\u00e6": "ae", "\u0153": "oe", "\u00f8": "o", "\u0142": "l",
    }
)  # fmt: skip
"""Of English."""

_MARKS = {
    "'": "‘’‚‛´`′ʼ‹›׳՚＇", '"': "“”„‟«»″「」『』《》〈〉〝〞״＂",
    ",": "،、，､՝፣၊᠂﹐", ".": "。．｡।॥۔։።។။᠃෴⸼", "?": "؟？՞፧¿﹖",
    "!": "！¡՜﹗", ";": "؛；፤﹔", ":": "：፥፦׃៖﹕", "-": "‐‑‒–—―−־〜～－", "(": "[{（［【〔｛", ")": "]}）］】〕｝",
    " ": "፡・", "...": "…⋯",
}  # fmt: skip
_PLAIN_MARKS = str.maketrans({mark: plain for plain, marks in _MARKS.items() for mark in marks})
_GREEK_MARKS = str.maketrans({";": "?", "\u00b7": ";"})
_DOTTED_I = str.maketrans({"I": "ı", "İ": "i"})
_SYLLABLES, _JAMO = re.compile("[\uac00-\ud7a3]+"), re.compile("[\u1100-\u11ff]+")


def fold_english(text: str) -> str:
    """Lower case, plain quotes and dashes, accents folded (e-acute to e), white space collapsed."""
    text = unicodedata.normalize("NFKC", text).lower().translate(_TYPOGRAPHY)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(text.split())


def plain_marks(text: str, language: str) -> str:
    """The text with the punctuation of every script as one of `PUNCTUATION`."""
    text = unicodedata.normalize("NFC", text)
    return (text.translate(_GREEK_MARKS) if language == "el" else text).translate(_PLAIN_MARKS)


def small_letters(text: str, language: str) -> str:
    """Letters composed and small, plain marks, white space collapsed; nothing visible is stripped."""
    text = plain_marks(text, language)
    if language in ("tr", "az"):
        text = text.translate(_DOTTED_I)
    text = unicodedata.normalize("NFC", text.lower())
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf" or c in JOINERS)
        text = _SYLLABLES.sub(lambda found: unicodedata.normalize("NFD", found[0]), text)
    return " ".join(text.split())


def written(text: str, language: str) -> str:
    """The text as the tokenizers `characters` and `bpe` spell it, before what the table does not hold is left out."""
    if language == "en":
        return fold_english(text)
    text = digits_by_name(text, language)
    if language in MANDARIN:
        return pinyin(small_letters(text, language))
    return kana_reading(small_letters(text, language)) if language == "ja" else small_letters(text, language)


def composed(text: str) -> str:
    """Jamo as syllables again, for reading."""
    return _JAMO.sub(lambda found: unicodedata.normalize("NFC", found[0]), text)


def alphabet(texts: Iterable[str], language: str) -> set[str]:
    """The symbols beside punctuation that these texts of one language are written with.

    Tones are part of Mandarin's; a character without a reading is part neither of Mandarin's nor of Japanese.
    """
    spelled = set[str]()
    for text in texts:
        spelled.update(written(text, language))
    letters = {c for c in spelled if is_letter(c) and not (language in BY_READING and script_of(c) == "CJK")}
    return letters | set(TONES) if language in MANDARIN else letters
