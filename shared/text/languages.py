"""The languages that are known by name: their scripts, their espeak-ng voices and the letters that tell them apart."""

import re
from dataclasses import dataclass

from xtts.shared.errors import LockstepError

_CODE = re.compile("[a-z]{2,3}")

_TABLE = """
en | English | LATIN | en-us |
de | German | LATIN | | äöüß
nl | Dutch | LATIN | | ëïéöü
af | Afrikaans | LATIN | | êëîôû
sv | Swedish | LATIN | | åäöé
da | Danish | LATIN | | æøå
nb | Norwegian | LATIN | | æøåéò
no | Norwegian | LATIN | nb | æøåéòô
is | Icelandic | LATIN | | áðéíóúýþæö
fr | French | LATIN | | àâæçéèêëîïôœùûüÿ
es | Spanish | LATIN | | áéíóúüñ
ca | Catalan | LATIN | | àçèéíïòóúü·
pt | Portuguese | LATIN | | ãõáâàéêíóôúç
it | Italian | LATIN | | àèéìòù
ro | Romanian | LATIN | | ăâîșțşţ
tr | Turkish | LATIN | | çğıöşüâ
az | Azerbaijani | LATIN | | çəğıöşü
uz | Uzbek | LATIN | |
pl | Polish | LATIN | | ąćęłńóśźż
cs | Czech | LATIN | | áčďéěíňóřšťúůýž
sk | Slovak | LATIN | | áäčďéíĺľňóôŕšťúýž
sl | Slovenian | LATIN | | čšž
hr | Croatian | LATIN | | čćđšž
hu | Hungarian | LATIN | | áéíóöőúüű
fi | Finnish | LATIN | | äö
et | Estonian | LATIN | | äöõüšž
lv | Latvian | LATIN | | āčēģīķļņšūž
lt | Lithuanian | LATIN | | ąčęėįšųūž
sq | Albanian | LATIN | | çë
mt | Maltese | LATIN | | ċġħż
ga | Irish | LATIN | | áéíóú
cy | Welsh | LATIN | | âêîôûŵŷ
eu | Basque | LATIN | | ñ
eo | Esperanto | LATIN | | ĉĝĥĵŝŭ
vi | Vietnamese | LATIN | | ăâđêôơưáàảãạấầẩẫậắằẳẵặéèẻẽẹếềểễệíìỉĩịóòỏõọốồổỗộớờởỡợúùủũụứừửữựýỳỷỹỵ
id | Indonesian | LATIN | |
ms | Malay | LATIN | |
sw | Swahili | LATIN | |
ru | Russian | CYRILLIC | | абвгдежзийклмнопрстуфхцчшщьюяёъыэ
uk | Ukrainian | CYRILLIC | | абвгдежзийклмнопрстуфхцчшщьюяґєії
be | Belarusian | CYRILLIC | | абвгдежзйклмнопрстуфхцчшьюяёіўыэ
bg | Bulgarian | CYRILLIC | | абвгдежзийклмнопрстуфхцчшщьюяъ
sr | Serbian | CYRILLIC LATIN | | абвгдежзиклмнопрстуфхцчшђјљњћџ
mk | Macedonian | CYRILLIC | | абвгдежзиклмнопрстуфхцчшѓѕјљњќџ
kk | Kazakh | CYRILLIC | | абвгдежзийклмнопрстуфхцчшщьюяёъыэіәғқңөұүһ
ar | Arabic | ARABIC | | ابتثجحخدذرزسشصضطظعغفقكلمنهويىةءأإآؤئ
fa | Persian | ARABIC | | ابتثجحخدذرزسشصضطظعغفقلمنهوءأآؤئپچژکگی
ur | Urdu | ARABIC | | ابتثجحخدذرزسشصضطظعغفقلمنوءأآؤئپچژکگیٹڈڑںےہھ
he | Hebrew | HEBREW | |
el | Greek | GREEK | |
hy | Armenian | ARMENIAN | |
ka | Georgian | GEORGIAN | |
am | Amharic | ETHIOPIC | |
hi | Hindi | DEVANAGARI | |
mr | Marathi | DEVANAGARI | | ळ
ne | Nepali | DEVANAGARI | | ऱ
bn | Bengali | BENGALI | |
pa | Punjabi | GURMUKHI | |
gu | Gujarati | GUJARATI | |
ta | Tamil | TAMIL | |
te | Telugu | TELUGU | |
kn | Kannada | KANNADA | |
ml | Malayalam | MALAYALAM | |
si | Sinhala | SINHALA | |
th | Thai | THAI | |
lo | Lao | LAO | - |
km | Khmer | KHMER | - |
my | Burmese | MYANMAR | |
ko | Korean | HANGUL | |
cmn | Mandarin | CJK LATIN BOPOMOFO | cmn |
zh | Chinese | CJK LATIN BOPOMOFO | cmn |
yue | Cantonese | CJK LATIN | |
ja | Japanese | HIRAGANA KATAKANA CJK | - |
"""
"""Code, English name, scripts by their Unicode names, voice (empty: the code; `-`: none reads it), letters."""

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
    letters: frozenset[str]
    """Letters that tell it apart from other languages of its script; a to z not among them."""


def _read_table() -> dict[str, Language]:
    languages = {}
    for line in _TABLE.strip().splitlines():
        code, name, scripts, voice, letters = (column.strip() for column in line.split("|"))
        languages[code] = Language(
            code=code, name=name, scripts=tuple(scripts.split()), voice="" if voice == "-" else voice or code,
            letters=frozenset(letters),
        )  # fmt: skip
    return languages


LANGUAGES = _read_table()


def find_language(code: str) -> Language:
    """The language of an ISO 639 code; one that is not in the table gets generic rules.

    Raises:
        LockstepError: It is no code of two or three small letters.
    """
    if code in LANGUAGES:
        return LANGUAGES[code]
    if not _CODE.fullmatch(code):
        expected = "an ISO 639 code of two or three small letters, such as en, de, fa or cmn"
        raise LockstepError("text.language", found=repr(code), expected=expected)
    return Language(code=code, name=code, scripts=(), voice=code, letters=frozenset())
