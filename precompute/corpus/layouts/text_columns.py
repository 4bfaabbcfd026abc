"""Looking at the columns of a text file: which of several layouts its lines are in, and when that cannot be told."""

import unicodedata
from collections import Counter
from pathlib import Path

from xtts.precompute.corpus.corpus_files import is_audio
from xtts.precompute.corpus.plain_names import name_problem
from xtts.precompute.corpus.text_lines import filled_lines, first_line
from xtts.shared.errors import LockstepError

METADATA_FILE = "metadata.csv"
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
_LONGEST_NAME_WORDS = 3
_MARK = "Po"
"""Unicode's category of full stops, commas and their like in every script."""


def table_of(data: Path) -> Path | None:
    """The text file of columns that lists the clips: `data`, or its `metadata.csv`; None where there is none."""
    if data.is_file():
        return data if data.suffix in TABLE_SUFFIXES else None
    return data / METADATA_FILE if (data / METADATA_FILE).exists() else None


def reading_of(path: Path) -> str:
    """The layout of lines with `|` between their columns: `ljspeech` or `piper`; empty for others.

    - A first line with the names `audio_file` or `audio`, and `text`, is a header, and no line of these layouts.
    - Two columns, the first of them in the first line a file with its suffix: Piper. Without suffix it is LJSpeech,
      which says the same.
    - More than three columns, or fewer than two, are left to LJSpeech and its messages.
    - Three columns are LJSpeech's `id|text|normalised text` when the second is a text in more than half of the lines:
      of more than three words, ending as a sentence does, not a plain name, or equal to the third but for case and
      marks. Lines of another number of columns, or with an empty third one, count as well: Piper has no such lines.
    - Three columns are Piper's `file|speaker|text` when the first line has a file with its suffix, no second column is
      a text, and speakers come more than once.

    A `LockstepError` for three columns that could be either, which shows the first such line and both readings, and for
    those of VITS, `file|text|number of the speaker`.
    """
    line = first_line(path)
    header = [name.strip().lower() for name in line.split("|")]
    if (line and "|" not in line) or ("text" in header and not {*header}.isdisjoint(("audio_file", "audio"))):
        return ""
    lines, speakers, widths, texts, numbers, first = 0, set[str](), Counter[int](), 0, 0, ("", [""])
    for where, line in filled_lines(path):
        columns = [column.strip() for column in line.split("|")]
        lines, widths[len(columns)] = lines + 1, widths[len(columns)] + 1
        numbers += len(columns) == 3 and columns[2].isdecimal()
        if len(columns) != 3 or _is_text(columns):
            texts += 1
            continue
        first = first if first[0] else (where, columns)
        speakers.add(columns[1])
    with_suffix = names_files(path)
    if with_suffix and 2 * widths[2] > lines:
        return "piper"
    if with_suffix and numbers == lines and 2 * texts > lines:
        fix = "name them: --columns file=0,text=1,speaker=2"
        raise LockstepError(f"{path}:1", found="columns file|text|number", expected="a text in words", fix=fix)
    if 2 * texts > lines or not widths[3]:
        return "ljspeech"
    if with_suffix and texts == 0 and len(speakers) < lines:
        return "piper"
    raise _ambiguous(*first)


def names_files(path: Path) -> bool:
    """Whether the first column of the first line is a file with its suffix."""
    return is_audio(first_line(path).partition("|")[0].strip())


def _is_text(columns: list[str]) -> bool:
    """Whether the second of three columns is a text, and no speaker."""
    _, second, third = columns
    if not third or len(second.split()) > _LONGEST_NAME_WORDS or name_problem(second) is not None:
        return True
    return unicodedata.category(second[-1]) == _MARK or _letters(second) == _letters(third)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _ambiguous(where: str, columns: list[str]) -> LockstepError:
    first, second, third = (f"{column[:40]!r}" for column in columns)
    line = "|".join(columns)
    return LockstepError(
        where,
        found=f"three columns that can be read in two ways: {line[:120]!r}",
        expected=f"text {second} and the same in words {third} (ljspeech), or speaker {second} and text {third} "
        f"of the file {first} (piper)",
        fix="say which: --layout ljspeech or --layout piper, or --columns file=0,speaker=1,text=2",
    )
