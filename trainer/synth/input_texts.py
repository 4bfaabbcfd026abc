"""The texts to speak: from an argument, a file of lines, or standard input."""

import sys
from dataclasses import dataclass
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Text:
    """One text and its output file."""

    words: str
    out: Path
    where: str
    """Source for messages: `TEXT`, or the file and line."""


def read_texts(words: str | None, file: Path | None, out: Path) -> list[Text]:
    """The texts of the command line; `-` or no text means standard input."""
    if file is not None:
        lines = _read(file).splitlines()
        return [
            Text(words=line, out=out / f"{number:04d}.wav", where=f"{file}:{number}")
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
    if words is None or words == "-":
        return [Text(words=_read_stdin(), out=out, where="standard input")]
    return [Text(words=words, out=out, where="TEXT")]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LockstepError(str(file), found=f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise LockstepError(str(file), found="not UTF-8 text") from None


def _read_stdin() -> str:
    if sys.stdin.isatty():
        print("type the text, then Ctrl-D", file=sys.stderr)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LockstepError("standard input", found="not UTF-8 text") from None


def check_speakable(texts: list[Text], tokenizer: Tokenizer, language: str, file: Path | None) -> list[str]:
    """Warnings about characters that are left out; `LockstepError` if a text has no others."""
    if not texts:
        raise LockstepError(str(file), found="no lines of text")
    warnings = []
    for text in texts:
        tokens = tokenizer.encode(text.words, language)
        unknown = " ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in tokens.unknown)
        if not tokens.ids:
            found = f"only unknown characters: {unknown}" if unknown else "no text"
            raise LockstepError(text.where, found=f"nothing to speak ({found})", expected="letters of the symbol table")
        if unknown:
            warnings.append(f"{text.where}: left out what the symbol table does not hold: {unknown}")
    return warnings
