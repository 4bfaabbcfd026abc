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
si Sinhala SINHALA; th Thai THAI -; lo Lao LAO -; km Khmer KHMER -; my Burmese MYANMAR -; ko Korean HANGUL
cmn Mandarin CJK+LATIN+BOPOMOFO cmn; zh Chinese CJK+LATIN+BOPOMOFO cmn; yue Cantonese CJK+LATIN
ja Japanese HIRAGANA+KATAKANA+CJK -
"""
"""Code, English name, scripts by their Unicode names, voice where it is not the code (`-`: none that
keeps its tones and vowels)."""

_ALIASES = """
en eng; de deu ger; nl nld dut; af afr; sv swe; da dan; nb nob; no nor; is isl ice; fr fra fre; es spa; ca cat; pt por
it ita; ro ron rum; tr tur; az aze; uz uzb; pl pol; cs ces cze; sk slk slo; sl slv; hr hrv; hu hun; fi fin; et est
lv lav; lt lit; sq sqi alb; mt mlt; ga gle; cy cym wel; eu eus baq; eo epo; vi vie; id ind; ms msa may; sw swa swh
ru rus; uk ukr; be bel; bg bul; sr srp; mk mkd mac; kk kaz; ar ara arb; fa fas per pes; ur urd; he heb iw; el ell gre
hy hye arm; ka kat geo; am amh; hi hin; mr mar; ne nep npi; bn ben; pa pan; gu guj; ta tam; te tel; kn kan; ml mal
si sin; th tha; lo lao; km khm; my mya bur; ko kor; zh zho chi; ja jpn jp
"""
"""Code, and what else it is called: ISO 639-2 and 639-3, former codes, and `jp` of Japanese toolchains."""

_OTHERS = """
aa ab ae ak an as av ay ba bi bm bo br bs ce ch co cr cu cv dv dz ee ff fj fo fy gd gl gn gv ha ho ht hz ia ie ig ii
ik io iu jv kg ki kj kl kr ks ku kv kw ky la lb lg li ln lu mg mh mi mn mo na nd ng nn nr nv ny oc oj om or os pi ps
qu rm rn rw sa sc sd se sg sh sm sn so ss st su tg ti tk tl tn to ts tt tw ug ve vo wa wo xh yi yo za zu
"""
"""The other codes of two letters."""

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


_CODE_OF = {alias: code for code, *aliases in map(str.split, re.split("[;\n]", _ALIASES.strip())) for alias in aliases}
LANGUAGES = {language.code: language for language in map(_read, re.split("[;\n]", _TABLE.strip()))}


def find_language(code: str) -> Language:
    """The language of an ISO 639 code of two or three small letters; one that is not in the table gets generic rules.

    A `LockstepError` where it is no such code, or one of two letters that no language has.
    """
    code = _CODE_OF.get(code, code)
    if code in LANGUAGES:
        return LANGUAGES[code]
    if not _CODE.fullmatch(code) or (len(code) == 2 and code not in _OTHERS.split()):
        expected = "an ISO 639 code of two or three small letters, such as en, de, fa or cmn"
        raise LockstepError("text.language", found=repr(code), expected=expected)
    return Language(code=code, name=code, scripts=(), voice=code)
