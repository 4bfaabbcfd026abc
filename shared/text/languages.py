"""The languages that are known by name: their scripts and their espeak-ng voices."""

import re
from dataclasses import dataclass

from xtts.shared.errors import LockstepError

_CODE = re.compile("[a-z]{2,3}")

_TABLE = """
en English LATIN en-us; de German LATIN; nl Dutch LATIN; af Afrikaans LATIN; sv Swedish LATIN; da Danish LATIN
nb Norwegian LATIN; no Norwegian LATIN nb; is Icelandic LATIN; fr French LATIN; es Spanish LATIN; ca Catalan LATIN
pt Portuguese LATIN; it Italian LATIN; ro Romanian LATIN; tr Turkish LATIN; az Azerbaijani LATIN; uz Uzbek LATIN
pl Polish LATIN; cs Czech LATIN; sk Slovak LATIN; sl Slovenian LATIN; hr Croatian LATIN; hu Hungarian LATIN
fi Finnish LATIN; et Estonian LATIN; lv Latvian LATIN; lt Lithuanian LATIN; sq Albanian LATIN; mt Maltese LATIN
ga Irish LATIN; cy Welsh LATIN; eu Basque LATIN; eo Esperanto LATIN; vi Vietnamese LATIN; id Indonesian LATIN
ms Malay LATIN; sw Swahili LATIN; ru Russian CYRILLIC; uk Ukrainian CYRILLIC; be Belarusian CYRILLIC
bg Bulgarian CYRILLIC; sr Serbian CYRILLIC+LATIN; mk Macedonian CYRILLIC; kk Kazakh CYRILLIC; ar Arabic ARABIC
fa Persian ARABIC; ur Urdu ARABIC; he Hebrew HEBREW; el Greek GREEK; hy Armenian ARMENIAN; ka Georgian GEORGIAN
am Amharic ETHIOPIC; hi Hindi DEVANAGARI; mr Marathi DEVANAGARI; ne Nepali DEVANAGARI; bn Bengali BENGALI
pa Punjabi GURMUKHI; gu Gujarati GUJARATI; ta Tamil TAMIL; te Telugu TELUGU; kn Kannada KANNADA; ml Malayalam MALAYALAM
si Sinhala SINHALA; th Thai THAI; lo Lao LAO -; km Khmer KHMER -; my Burmese MYANMAR; ko Korean HANGUL
cmn Mandarin CJK+LATIN+BOPOMOFO cmn; zh Chinese CJK+LATIN+BOPOMOFO cmn; yue Cantonese CJK+LATIN
ja Japanese HIRAGANA+KATAKANA+CJK -
"""
"""Code, English name, scripts by their Unicode names, voice where it is not the code (`-`: none reads it)."""

MANDARIN = ("cmn", "zh")


@dataclass(frozen=True, kw_only=True)
class Language:
    """What is known of one language."""

    code: str
    name: str
    """In English; the code where the language is not in the table."""
    scripts: tuple[str, ...]
    """First words of the Unicode names of its letters; empty where unknown."""
    voice: str
    """Of espeak-ng; empty where espeak-ng has none that reads words."""


def _read(entry: str) -> Language:
    code, name, scripts, *voices = entry.split()
    voice = voices[0] if voices else code
    return Language(code=code, name=name, scripts=tuple(scripts.split("+")), voice=voice.removeprefix("-"))


LANGUAGES = {language.code: language for language in map(_read, re.split("[;\n]", _TABLE.strip()))}


def find_language(code: str) -> Language:
    """The language of an ISO 639 code; one that is not in the table gets generic rules.

    A `LockstepError` where it is no code of two or three small letters.
    """
    if code in LANGUAGES:
        return LANGUAGES[code]
    if not _CODE.fullmatch(code):
        expected = "an ISO 639 code of two or three small letters, such as en, de, fa or cmn"
        raise LockstepError("text.language", found=repr(code), expected=expected)
    return Language(code=code, name=code, scripts=(), voice=code)
