"""Checks of a clip's fields: names that are safe in file names and on a terminal, known languages, undamaged text."""

import re
from functools import cache
from pathlib import Path

import yaml

from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError
from xtts.shared.languages import LANGUAGES, find_language

_LONGEST_ID_BYTES = 200
_CODE_OF_NAME = {language.name.lower(): language.code for language in LANGUAGES.values()}
_SUSPICIOUS = re.compile(r"[^ !#$'()*+,./0-9:;@A-Z\]^_`a-z|~\x22-]|=[0-9A-F]{2}|[a-z]\?[a-z]|^b['\"]")
"""A quick first check: a text without a match has none of the faults in `broken_texts.yaml`."""


def check_name(name: str, *, what: str, location: str) -> None:
    """Raise a `LockstepError` if `name` is not a plain name; `what` says what it names."""
    problem = name_problem(name)
    if problem:
        raise LockstepError(location, found=f"{what} {name[:60]!r} {problem}", expected="a plain name")


def is_language(code: str) -> bool:
    """Whether `check_language` accepts the code and the language is one of `LANGUAGES`."""
    try:
        return check_language(code, "") in LANGUAGES
    except LockstepError:
        return False


def check_language(code: str, location: str) -> str:
    """Return the ISO 639 code of `English`, `en-US`, `fa_IR` or the like; an empty code stays empty."""
    plain = code.strip().lower()
    try:
        return find_language(_CODE_OF_NAME.get(plain) or re.split("[-_]", plain)[0]).code if code else ""
    except LockstepError as error:
        raise LockstepError(location, found=f"language {code[:40]!r}", expected=error.expected) from None


def encodable(text: str) -> bool:
    """Whether UTF-8 can encode the text: JSON can spell lone surrogates, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def name_problem(name: str) -> str | None:
    """Return why `name` could lead out of the corpus or break a terminal; None for a plain name."""
    if not name:
        return "is empty"
    if not encodable(name):
        return "holds characters that are no text"
    if len(name.encode()) > _LONGEST_ID_BYTES:
        return f"is longer than {_LONGEST_ID_BYTES} bytes"
    if name.startswith(".") or "/" in name or "\\" in name:
        return "reads as a path"
    if not name.isprintable():
        return "holds control characters"
    return None


def check_text(clip: Clip, data: Path) -> Clip:
    """Return the clip of the corpus `data`; raise a `LockstepError` if its text is damaged, as by a wrong encoding."""
    if _SUSPICIOUS.search(clip.text):
        for fault, pattern, fix in _faults():
            if match := pattern.search(clip.text):
                shown = f"{match[0]!r} in clip {clip.id}, {clip.text[:60]!r}"
                raise LockstepError(str(data), found=f"{fault}: {shown}", expected="plain text", fix=fix)
    return clip


@cache
def _faults() -> list[tuple[str, re.Pattern[str], str]]:
    """Return (fault, pattern, fix) of each entry of `broken_texts.yaml`."""
    table = yaml.safe_load(Path(__file__).with_name("broken_texts.yaml").read_text(encoding="utf-8"))
    return [
        (fault["fault"], re.compile(fault["pattern"].replace("{continuation}", table["continuation"])), fault["fix"])
        for fault in table["faults"]
    ]
