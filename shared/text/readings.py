"""Readings of scripts that do not show the pronunciation, by optional libraries.

Japanese becomes kana by Open JTalk (`pyopenjtalk-plus`, extra `japanese`), Mandarin pinyin by `pypinyin` (extra
`mandarin`): syllables with their tones, such as `ni³ hao³`. Tones are superscripts, 5 for the neutral one, so that no
number in a text is taken for a tone.
"""

import io
import re
from contextlib import redirect_stdout
from types import ModuleType

from xtts.shared.errors import import_extra

_JAPANESE = re.compile("[\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff0-9]+")
TONES = "¹²³⁴⁵"
_TO_TONE = str.maketrans("12345", TONES)
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3007]+")
_SPACE_AT_MARK = re.compile(r" (?=[,.;:?!)])|(?<=\() ")
_TYPED_TONE = re.compile("(?<=[a-zü])[1-5](?![0-9])")


def kana_reading(text: str) -> str:
    """Return the text with Japanese words and numbers as katakana, as they are spoken; the rest stays.

    Raises `LockstepError` if there is Japanese but no pyopenjtalk.
    """
    return _JAPANESE.sub(lambda match: str(_open_jtalk().g2p(match[0], kana=True)), text)


def _open_jtalk() -> ModuleType:
    with redirect_stdout(io.StringIO()):  # it recommends another extra
        return import_extra("pyopenjtalk", "japanese", "text.language", "Japanese needs pyopenjtalk-plus")


def pinyin(text: str) -> str:
    """Return the text with every Chinese character as a syllable, read in context, with spaces between syllables.

    Characters that pypinyin cannot read stay. `ni3` in a text that is pinyin already becomes `ni³`. Raises
    `LockstepError` if there are Chinese characters but no pypinyin.
    """
    text = _TYPED_TONE.sub(lambda match: match[0].translate(_TO_TONE), text)
    spaced = " ".join(_CHINESE.sub(lambda match: f" {_syllables(match[0])} ", text).split())
    return _SPACE_AT_MARK.sub("", spaced)


def _syllables(characters: str) -> str:
    library = import_extra("pypinyin", "mandarin", "text.language", "Mandarin needs pypinyin")
    syllables = library.lazy_pinyin(characters, style=library.Style.TONE3, neutral_tone_with_five=True, v_to_u=True)
    return " ".join(s[0] if _CHINESE.match(s) else s.translate(_TO_TONE) for s in syllables)
