"""Languages with known scripts and espeak-ng voices, from `languages.tsv`."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from xtts.shared.errors import LockstepError

_CODE = re.compile("(?!und|mul|mis|zxx)[a-z]{2,3}")

_OTHER_CODES = """
aa ab ae ak an as av ay ba bi bm bo br bs ce ch co cr cu cv dv dz ee ff fj fo fy gd gl gn gv ha ho ht hz ia ie ig ii
ik io iu jv kg ki kj kl kr ks ku kv kw ky la lb lg li ln lu mg mh mi mn mo na nd ng nn nr nv ny oc oj om or os pi ps
qu rm rn rw sa sc sd se sg sh sm sn so ss st su tg ti tk tl tn to ts tt tw ty ug ve vo wa wo xh yi yo za zu
"""
"""Two-letter codes of ISO 639-1 that are not in the table."""

MANDARIN = ("cmn", "zh")


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language's name, scripts and voice."""

    code: str
    name: str
    """English name; the code if the language is not in the table."""
    scripts: tuple[str, ...]
    """First words of the Unicode names of its letters, such as CYRILLIC; empty if unknown."""
    voice: str
    """espeak-ng voice; empty if none reads words with all tones and vowels."""
    letters: frozenset[str] = frozenset()
    """Letters beyond a to z, in lower case, of a language in the Latin script; empty if unknown."""

    @property
    def direction(self) -> str:
        """Value of HTML's `dir` for texts: from right to left, whatever their first letter, or as their letters do."""
        return "rtl" if self.scripts[:1] in (("ARABIC",), ("HEBREW",), ("THAANA",)) else "auto"


_ROWS = [row.split("\t") for row in Path(__file__).with_name("languages.tsv").read_text("utf-8").splitlines()[1:]]
LANGUAGES = {
    code: Language(
        code=code, name=name, scripts=tuple(scripts.split("+")), voice=voice.strip("-"), letters=frozenset(letters)
    )
    for code, _, name, scripts, voice, letters in _ROWS
}
_MAIN_CODES = {other: code for code, others, *_ in _ROWS for other in others.split()}


def find_language(code: str) -> Language:
    """Return the language of an ISO 639 code of two or three lower-case letters, in the table or with generic rules.

    Raises `LockstepError` for anything else: two letters that ISO 639-1 does not assign, a code for several languages.
    """
    code = _MAIN_CODES.get(code, code)
    if code in LANGUAGES:
        return LANGUAGES[code]
    if not _CODE.fullmatch(code) or (len(code) == 2 and code not in _OTHER_CODES.split()):
        expected = "an ISO 639 code of two or three lower-case letters, such as en, de, fa or cmn"
        raise LockstepError("text.language", found=repr(code), expected=expected)
    return Language(code=code, name=code, scripts=(), voice=code)


def chosen_language(tag: str | None, codes: Collection[str]) -> str | None:
    """Return the one of `codes` that a tag names, as de-DE, deu or German do; None for `auto`, other tags unchanged."""
    if not tag or tag.lower() == "auto":
        return None
    main = re.split("[-_]", tag.strip().lower())[0]
    wanted = {_MAIN_CODES.get(main, main)}
    wanted |= {*MANDARIN} & wanted and {*MANDARIN}
    names = {code: {code, find_language(code).code, find_language(code).name.lower()} for code in codes}
    return next((code for code in codes if wanted & names[code]), tag)
