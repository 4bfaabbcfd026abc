# ruff: noqa: RUF002 - IPA letters look like others
"""Pronunciations that people give: `[[fəˈnɛtɪk]]` in a text, and lexicons, which say how words are read.

What is in double brackets is phonemes as they are, for the tokenizer `phonemes`; whatever else reads or cuts a text
leaves it alone. A lexicon has for a word such phonemes, or a respelling, which is read in its place.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.shared.text.scripts import is_letter, is_sign

GIVEN = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_PLACE = "\ufdd0"  # no character of any text
_LINE = re.compile(r"(?P<word>[^\t]+)\t(?P<reading>[^\t]+)")

Lexicon = Mapping[str, str]
"""Words to `[[phonemes]]` or respellings. One in small letters is meant in any case, all others as they are written."""


def outside_given(text: str, change: Callable[[str], str]) -> str:
    """The text after a change that does not see what is in double brackets, but that something stands there."""
    if "[[" not in text:
        return change(text)
    given = GIVEN.finditer(text := text.replace(_PLACE, " "))
    changed = change(GIVEN.sub(_PLACE, text))
    return re.sub(_PLACE, lambda _: next(given)[0], changed)


def pronounced(text: str, lexicon: Lexicon) -> str:
    """The text with the words of a lexicon as it reads them; a word stands between spaces, signs and marks."""
    if not lexicon:
        return text
    return outside_given(text, lambda plain: re.sub(r"\S+", lambda found: _pronounced(found[0], lexicon), plain))


def _pronounced(written: str, lexicon: Lexicon) -> str:
    """Letters and signs between two spaces: `co-op` as one word if the lexicon has it, else as two."""
    parts = ["".join(part) for _, part in groupby(written, is_sign)]
    start, end = is_sign(parts[0][0]), len(parts) - is_sign(parts[-1][0])
    whole = "".join(parts[start:end])
    if (reading := _reading(whole, lexicon)) is not None:
        parts[start:end] = [reading]
    else:
        parts = [_reading(part, lexicon) or part for part in parts]
    return "".join(parts)


def _reading(word: str, lexicon: Lexicon) -> str | None:
    word = _key(word)
    return lexicon.get(word, lexicon.get(word.lower()))


def _key(word: str) -> str:
    return unicodedata.normalize("NFC", word).replace("\u2019", "'")


def read_lexicon(path: Path, tokenizer: str) -> dict[str, str]:
    """The words of a file with a line for each: the word, a tab, `[[phonemes]]` or a respelling.

    tokenizer: its kind, which must be `phonemes` for phonemes.

    A `LockstepError` where the file cannot be read, or a line is not of this form.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else "not UTF-8 text"
        raise LockstepError(str(path), found=reason, expected="lines of a word, a tab and its reading") from None
    found = dict[str, str]()
    for number, line in enumerate(lines, 1):
        if line.strip():
            word, reading = _entry(line.strip(), f"{path}:{number}", tokenizer)
            if found.setdefault(word, reading) != reading:
                raise LockstepError(f"{path}:{number}", found=f"another reading of {word!r}", expected="one for a word")
    return dict(sorted(found.items()))


def _entry(line: str, where: str, tokenizer: str) -> tuple[str, str]:
    entry = _LINE.fullmatch(line)
    word, reading = (_key(part.strip()) for part in entry.groups()) if entry else ("", "")
    if not any(map(is_letter, reading)):
        expected = "a word, a tab, and [[phonemes]] or a respelling"
        raise LockstepError(where, found=repr(line[:60]), expected=expected, fix="put one tab between the two")
    if any(map(str.isspace, word)) or is_sign(word[0]) or is_sign(word[-1]) or any(map(str.isdecimal, word)):
        fix = "give each word a line; numbers and abbreviations are words before the lexicon is looked up"
        raise LockstepError(where, found=repr(word[:60]), expected="a word that begins and ends with a letter", fix=fix)
    if tokenizer != "phonemes" and GIVEN.search(reading):
        expected = f"a respelling for the tokenizer {tokenizer}, which reads letters"
        fix = "spell the word as it sounds, or build with --set text.tokenizer=phonemes"
        raise LockstepError(where, found=f"phonemes, {reading[:60]}", expected=expected, fix=fix)
    return word, reading
