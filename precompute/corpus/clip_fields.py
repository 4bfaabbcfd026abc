"""Checks of what a corpus says of a clip: names that are safe as file names and on a terminal, and a plain text."""

import re
from functools import cache
from pathlib import Path

import yaml

from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError
from xtts.shared.languages import LANGUAGES, find_language

_LONGEST_ID_BYTES = 200
_CODES = {language.name.lower(): language.code for language in LANGUAGES.values()}
_SIGNS = re.compile(r"[^ !#$'()*+,./0-9:;@A-Z\]^_`a-z|~\x22-]|=[0-9A-F]{2}|[a-z]\?[a-z]|^b['\"]")
"""A quick check: a text without any of these has none of the faults."""


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


def check_text(clip: Clip, data: Path) -> Clip:
    """The clip; a `LockstepError` where its text is faulty. data: its corpus."""
    if _SIGNS.search(clip.text):
        for fault, pattern, fix in _faults():
            if match := pattern.search(clip.text):
                shown = f"{match[0]!r} in clip {clip.id}, {clip.text[:60]!r}"
                raise LockstepError(str(data), found=f"{fault}: {shown}", expected="plain text", fix=fix)
    return clip


@cache
def _faults() -> list[tuple[str, re.Pattern[str], str]]:
    """`broken_texts.yaml`: (fault, pattern, fix)."""
    table = yaml.safe_load(Path(__file__).with_name("broken_texts.yaml").read_text(encoding="utf-8"))
    return [
        (fault["fault"], re.compile(fault["pattern"].replace("{continuation}", table["continuation"])), fault["fix"])
        for fault in table["faults"]
    ]
