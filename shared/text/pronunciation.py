# ruff: noqa: RUF002 - IPA letters look like others
"""Pronunciations given by users: `[[fəˈnɛtɪk]]` in a text, and lexicons of words.

Double brackets hold phonemes for the tokenizer `phonemes`; everything else that reads or cuts a text leaves them alone.
A lexicon maps a word to such phonemes or to a respelling, which is read in its place.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path

from xtts.shared.errors import LockstepError, read_text
from xtts.shared.text.scripts import is_letter, is_sign

INLINE_PHONEMES = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_STAND_IN = "\ufdd0"  # no character of any text
_LINE = re.compile(r"(?P<word>[^\t]+)\t(?P<reading>[^\t]+)")

Lexicon = Mapping[str, str]
"""Words to `[[phonemes]]` or respellings. A lower-case word matches in any case, others as they are written."""


def outside_phonemes(text: str, change: Callable[[str], str]) -> str:
    """Apply a change to a text, with a stand-in in place of each `[[phonemes]]`."""
    if "[[" not in text:
        return change(text)
    given = INLINE_PHONEMES.finditer(text := text.replace(_STAND_IN, " "))
    changed = change(INLINE_PHONEMES.sub(_STAND_IN, text))
    return re.sub(_STAND_IN, lambda _: next(given)[0], changed)


def apply_lexicon(text: str, lexicon: Lexicon) -> str:
    """Replace the words of a lexicon by their readings; a word stands between spaces, signs and marks."""
    if not lexicon:
        return text
    return outside_phonemes(text, lambda plain: re.sub(r"\S+", lambda match: _apply_to_token(match[0], lexicon), plain))


def written_entries(lexicon: Lexicon) -> Lexicon:
    """Return the entries with a digit or a point, which are found before numbers are read and sentences are cut."""
    return {word: reading for word, reading in lexicon.items() if any(c == "." or c.isdecimal() for c in word)}


def _apply_to_token(token: str, lexicon: Lexicon) -> str:
    """Replace the words of a token without spaces: `co-op` as one word if the lexicon has it, else as two."""
    if "." in token and (reading := _reading(token, lexicon)) is not None:
        return reading
    runs = ["".join(characters) for _, characters in groupby(token, is_sign)]
    start, end = is_sign(runs[0][0]), len(runs) - is_sign(runs[-1][0])
    if (reading := _reading("".join(runs[start:end]), lexicon)) is not None:
        runs[start:end] = [reading]
    else:
        runs = [_reading(run, lexicon) or run for run in runs]
    return "".join(runs)


def _reading(word: str, lexicon: Lexicon) -> str | None:
    word = _key(word)
    return lexicon.get(word, lexicon.get(word.lower()))


def _key(word: str) -> str:
    return unicodedata.normalize("NFC", word).replace("\u2019", "'")


def read_lexicon(path: Path, tokenizer: str) -> dict[str, str]:
    """Read a file of lines that hold a word, a tab, and `[[phonemes]]` or a respelling.

    tokenizer: its kind; only `phonemes` accepts phonemes.

    Raises `LockstepError` if the file cannot be read or a line is malformed.
    """
    lines = read_text(path, expected="lines of a word, a tab and its reading").split("\n")
    lexicon = dict[str, str]()
    for line_number, line in enumerate(lines, 1):
        if line.strip():
            location = f"{path}:{line_number}"
            word, reading = _parse_line(line.strip(), location, tokenizer)
            if lexicon.setdefault(word, reading) != reading:
                raise LockstepError(location, found=f"a second reading of {word!r}", expected="one for each word")
    return dict(sorted(lexicon.items()))


def _parse_line(line: str, location: str, tokenizer: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line)
    word, reading = (_key(field.strip()) for field in match.groups()) if match else ("", "")
    if not any(map(is_letter, reading)):
        expected = "a word, a tab, and [[phonemes]] or a respelling"
        raise LockstepError(location, found=repr(line[:60]), expected=expected, fix="put one tab between the two")
    if any(map(str.isspace, word)) or is_sign(word[0]) or is_sign(word.removesuffix(".")[-1]):
        expected = "a word that begins with a letter or digit, and ends so or with a point"
        fix = "give each word a line"
        raise LockstepError(location, found=repr(word[:60]), expected=expected, fix=fix)
    if tokenizer != "phonemes" and INLINE_PHONEMES.search(reading):
        expected = f"a respelling for the tokenizer {tokenizer}, which reads letters"
        fix = "spell the word as it sounds, or build with --set text.tokenizer=phonemes"
        raise LockstepError(location, found=f"phonemes, {reading[:60]}", expected=expected, fix=fix)
    return word, reading
