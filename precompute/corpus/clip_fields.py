"""Checks of a clip's fields: names that are safe in file names and on a terminal, known languages."""

import re

from xtts.shared.errors import LockstepError
from xtts.shared.languages import LANGUAGES, find_language

_LONGEST_NAME_BYTES = 1000
"""A file's name has up to 255, its id also a folder, times and the name of a corpus."""
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, end a line or reverse what follows. Other spaces, joiners and marks occur
in names: U+202F on macOS, U+200C in Persian, U+200E of WhatsApp."""
_CODE_OF_NAME = {language.name.lower(): language.code for language in LANGUAGES.values()}


def check_name(name: str, *, what: str, location: str) -> None:
    """Raise a `LockstepError` if `name` is not a plain name; what: its kind, for the message."""
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
        return "holds characters that are not text"
    if len(name.encode()) > _LONGEST_NAME_BYTES:
        return f"is longer than {_LONGEST_NAME_BYTES} bytes"
    if name.startswith(".") or "/" in name or "\\" in name:
        return "reads as a path"
    if CONTROLS.search(name):
        return "holds control characters"
    return None
