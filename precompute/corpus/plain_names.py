"""Names that are safe as file names and on a terminal: ids of clips, speakers, languages."""

import re

from xtts.shared.errors import LockstepError
from xtts.shared.languages import LANGUAGES, find_language

_LONGEST_ID_BYTES = 200
_CODES = {language.name.lower(): language.code for language in LANGUAGES.values()}


def check_name(name: str, *, what: str, where: str) -> None:
    """Raise for a name that is not plain."""
    problem = name_problem(name)
    if problem:
        raise LockstepError(where, found=f"{what} {name[:60]!r} {problem}", expected="a plain name")


def is_language(code: str) -> bool:
    """Whether `check_language` knows it by name."""
    try:
        return check_language(code, "") in LANGUAGES
    except LockstepError:
        return False


def check_language(code: str, where: str) -> str:
    """A clip's language as an ISO 639 code, for `English`, `en-US` and `fa_IR` too; empty where none is named."""
    plain = code.strip().lower()
    try:
        return find_language(_CODES.get(plain) or re.split("[-_]", plain)[0]).code if code else ""
    except LockstepError as error:
        raise LockstepError(where, found=f"language {code[:40]!r}", expected=error.expected) from None


def encodable(text: str) -> bool:
    """False for lone surrogates, which JSON can spell but no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def name_problem(name: str) -> str | None:
    """Say why `name` is not a plain name, which could mean a path outside the corpus or a broken terminal."""
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
