"""Looking at the columns of a text file: which of several layouts its lines are in, and when that cannot be told."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from xtts.precompute.corpus.corpus_files import is_audio
from xtts.precompute.corpus.plain_names import is_language, name_problem
from xtts.precompute.corpus.text_lines import filled_lines, first_line
from xtts.shared.errors import LockstepError

METADATA_FILE = "metadata.csv"
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
USUAL_NAMES = {
    "text": ("text", "transcription", "sentence", "transcript", "raw_text", "text_original", "characters"),
    "normalised": ("normalized_text", "text_normalized", "normalised_text", "text_normalised"),
    "speaker": ("speaker", "speaker_id", "client_id", "speaker_name"),
    "language": ("language", "lang", "locale"),
    "id": ("id", "_id", "utt_id"),
}
"""Names that corpora give the fields of a clip, as columns or JSON keys; the first that has a value wins."""
HEADER_NAMES = {
    **USUAL_NAMES,
    "file": ("file_name", "filename", "file", "path", "audio", "audio_file", "audio_filepath", "wav", "basename"),
}
"""`USUAL_NAMES`, and names of the audio file, in the header of a list."""
_LONGEST_NAME_WORDS = 3
_MARK = "Po"
"""Unicode's category of full stops, commas and their like in every script."""
_MOST_LABELS = 1000
"""Different values of a column beyond which they are no labels."""
_LABELS_PER_TEXT = 3
"""Twice the values of a third column beside each different text from which on it holds labels."""
_ENOUGH_CLIPS = 4
"""From so many on, not every clip has a speaker of its own."""
_SHORTER = 3
"""Times that labels are shorter than texts, in bytes: a Chinese character has three, about as many as its pinyin."""


@dataclass
class _Column:
    """What the values of a column show."""

    lines: int = 0
    """Those where it has a value."""
    bytes: int = 0
    values: set[str] = field(default_factory=set)
    """At most one more than `_MOST_LABELS`."""
    has_letters: bool = False
    is_label: bool = False
    """One text has many values of it."""
    first: str = ""

    def add(self, value: str) -> None:
        """Note a value, if there is one."""
        if not value:
            return
        self.first, self.lines, self.bytes = self.first or value, self.lines + 1, self.bytes + len(value.encode())
        self.has_letters = self.has_letters or any(map(str.isalpha, value))
        if len(self.values) <= _MOST_LABELS:
            self.values.add(value)

    def kind(self, text: "_Column") -> str:
        """`text`, `speaker`, `language`, or empty for amounts, times and files; text: the texts beside its values."""
        if not self.has_letters:
            return "speaker" if all(map(str.isdecimal, self.values)) else ""
        if all(map(is_audio, self.values)):
            return ""
        if all(map(is_language, self.values)):
            return "language"
        is_few = 2 * len(self.values) < min(self.lines, len(text.values))
        is_short = _SHORTER * self.bytes * text.lines < text.bytes * self.lines
        return "speaker" if is_few or is_short or self.is_label else "text"

    def may_be_speaker(self, text: "_Column") -> bool:
        """Whether nothing speaks against names of speakers, of whom a small corpus may have one a clip."""
        is_sentence = any(len(value.split()) > _LONGEST_NAME_WORDS for value in self.values)
        is_different = len(self.values) == self.lines >= _ENOUGH_CLIPS
        is_name = 2 * len(self.values) <= self.lines or not (is_sentence or is_different)
        return {"text": is_name, "speaker": True}.get(self.kind(text), False)


def table_of(data: Path) -> Path | None:
    """The text file of columns that lists the clips: `data`, or its `metadata.csv`; None where there is none."""
    if data.is_file():
        return data if data.suffix in TABLE_SUFFIXES else None
    return data / METADATA_FILE if (data / METADATA_FILE).exists() else None


def reading_of(path: Path) -> str:
    """The layout of lines with `|` between their columns: `ljspeech` or `piper`; empty for others.

    - A first line with usual names of a file or id, and of a text, is a header, and no line of these layouts.
    - Two columns, the first of them in the first line a file with its suffix: Piper. Without suffix it is LJSpeech,
      which says the same.
    - Four columns are `file|speaker|language|text` when the third holds codes of languages, and the fourth is longer
      than the second.
    - More than three columns, or fewer than two, are else left to LJSpeech and its messages.
    - Three columns are LJSpeech's `id|text|normalised text` when the second is a text in more than half of the lines:
      of more than three words, ending as a sentence does, not a plain name, or equal to the third but for case and
      marks. Lines of another number of columns, or with an empty third one, count as well: Piper has no such lines.
    - Three columns are Piper's `file|speaker|text` when the first line has a file with its suffix, no second column is
      a text, and speakers come more than once.

    A `LockstepError` for three columns that could be either, which shows the first such line and both readings, and for
    a third or fourth column that holds something else than LJSpeech has there.
    """
    line = first_line(path)
    header = {name.strip().lower() for name in line.split("|")}
    if (line and "|" not in line) or is_header(header):
        return ""
    lines, widths, texts, first = 0, Counter[int](), 0, ("", [""])
    columns, beside, pairs = [_Column() for _ in range(5)], _Column(), set[tuple[str, str]]()
    for where, line in filled_lines(path):
        values = [value.strip() for value in line.split("|")]
        for column, value in zip_longest(columns, values[: len(columns)], fillvalue=""):
            column.add(value)  # type: ignore[union-attr]
        if len(values) > 2 and values[2] and len(pairs) < _MOST_LABELS:
            beside.add(values[1])
            pairs.add((values[1], values[2]))
        lines, widths[len(values)] = lines + 1, widths[len(values)] + 1
        if len(values) != 3 or _is_text(values):
            texts += 1
        elif not first[0]:
            first = where, values
    with_suffix = names_files(path)
    if with_suffix and 2 * widths[2] > lines:
        return "piper"
    _, second, third, fourth, _ = columns
    kinds = second.kind(fourth), third.kind(fourth)
    if with_suffix and widths[4] == lines and "language" == kinds[1] != kinds[0] and fourth.bytes > second.bytes:
        return "piper"
    if 2 * texts > lines or not widths[3]:
        if max(widths, default=0) == _most_frequent(widths) <= len(columns):  # else LJSpeech names a line
            third.is_label = 2 * len(pairs) > _LABELS_PER_TEXT * len(beside.values)
            _check_kinds(path, columns, beside, with_suffix=with_suffix)
        return "ljspeech"
    if with_suffix and texts == 0 and len(second.values) < lines:
        return "piper"
    raise _ambiguous(*first)


def is_header(names: set[str]) -> bool:
    """Whether the small names of a line are those of columns: of a file or an id, and of a text."""
    files, texts = {*HEADER_NAMES["file"], *HEADER_NAMES["id"]}, {*HEADER_NAMES["text"], *HEADER_NAMES["normalised"]}
    return not names.isdisjoint(files) and not names.isdisjoint(texts)


def usual_width(path: Path) -> int:
    """The number of columns that most lines have; of two such numbers the larger."""
    return _most_frequent(Counter(line.count("|") + 1 for _, line in filled_lines(path)))


def _most_frequent(widths: Counter[int]) -> int:
    return max(widths, key=lambda width: (widths[width], width), default=0)


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


def _check_kinds(path: Path, columns: Sequence[_Column], beside: _Column, *, with_suffix: bool) -> None:
    """Raise where later columns are none of `id|text|normalised|speaker|language`.

    beside: the second column of the lines that have a third. The error shows how else the lines can be read. Comparing
    letters would not do: Chinese and its pinyin share none.
    """
    _, text, third, fourth, fifth = columns
    fitting = (
        ("third", "the text in words", third, third.kind(beside) == "text"),
        ("fourth", "a speaker", fourth, fourth.may_be_speaker(text)),
        ("fifth", "a language", fifth, fifth.kind(text) == "language"),
    )
    wrong = [(number, what, column) for number, what, column, fits in fitting if column.lines and not fits]
    if not wrong:
        return
    number, what, column = wrong[0]
    kinds = _kinds(columns)
    named = {"file" if with_suffix else "id": 0}
    for place, kind in kinds.items():
        named.setdefault(kind or "amount", place)
    named.pop("amount", None)
    plain = {kind: place for kind, place in named.items() if kind in ("file", "id", "text")}
    options = [",".join(f"{kind}={place}" for kind, place in one.items()) for one in (named, plain)]
    others = "|".join(kind or "amount" for kind in kinds.values())
    raise LockstepError(
        f"{path}:1",
        found=f"a {number} column such as {column.first[:40]!r}, {len(column.values)} values in {column.lines} lines",
        expected=f"{what} (ljspeech); the columns look like {next(iter(named))}|{others}",
        fix=f"say which: {' or '.join(f'--columns {one}' for one in dict.fromkeys(options))}, or --layout ljspeech",
    )


def _kinds(columns: Sequence[_Column]) -> dict[int, str]:
    """What `--columns` would call the columns after the first, by number; empty for amounts."""
    filled = {place: column for place, column in enumerate(columns) if place and column.lines}
    longest = max(filled, key=lambda place: filled[place].bytes)
    text = 1 if columns[1].kind(columns[longest]) == "text" else longest
    kinds = {place: "text" if place == text else column.kind(columns[text]) for place, column in filled.items()}
    return {place: "normalised" if kind == "text" and place != text else kind for place, kind in kinds.items()}


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
