"""Detecting the layout of a list from its columns, and rejecting lists that can be read in several ways."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from xtts.precompute.corpus.clip_fields import is_language, name_problem
from xtts.precompute.corpus.corpus_files import is_audio
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.errors import LockstepError

METADATA_FILE = "metadata.csv"
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
USUAL_NAMES = {
    "text": ("text", "transcription", "sentence", "transcript", "raw_text", "text_original", "characters"),
    "normalised": ("normalized_text", "text_normalized", "normalised_text", "text_normalised"),
    "speaker": ("speaker", "speaker_id", "client_id", "speaker_name", "spk"),
    "language": ("language", "lang", "lang_code", "locale"),
    "id": ("id", "_id", "utt_id"),
}
"""Names of a clip's fields as columns or JSON keys in common corpora; the first that has a value is used."""
HEADER_NAMES = {
    **USUAL_NAMES,
    "file": (
        "file_name",
        "filename",
        "file",
        "path",
        "audio",
        "audio_file",
        "audio_filepath",
        "wav",
        "wav_filename",
        "basename",
    ),
}
"""`USUAL_NAMES` and the names of the audio file, as columns in the header of a list."""
KIND_OF = {name: kind for kind, names in HEADER_NAMES.items() for name in names}


def column_name(name: str) -> str:
    """Return the name of a column in the spelling of the tables here: `file_name` of `File name`."""
    return "_".join(name.lower().replace("-", " ").split())


_SAMPLED_LINES = 1000
"""Count of lines at the start of a list from which its columns are inferred."""
_LONGEST_NAME_WORDS = 3
_ENOUGH_CLIPS = 4
"""With this many clips or more, a column whose values all differ does not hold speakers."""
_LABEL_RATIO = 3
"""Labels are shorter than texts by at least this factor, in UTF-8 bytes: a Chinese character has 3, like its pinyin."""
_Line = tuple[str, list[str]]
"""(location, values between `|`)."""


def find_table(data: Path) -> Path | None:
    """Return the text file that lists the clips: `data`, or its `metadata.csv`; None if there is none."""
    if data.is_file():
        return data if data.suffix.lower() in TABLE_SUFFIXES else None
    return data / METADATA_FILE if (data / METADATA_FILE).exists() else None


def layout_of(data: Path) -> str:
    """Return the layout of lines with `|` between their columns: `ljspeech` or `piper`; empty for others.

    The first `_SAMPLED_LINES` decide:

    - A first line that names a file or id, and a text, is a header: another layout.
    - Two columns are `piper` if the first line begins with a file with its suffix; otherwise both layouts agree, and
      `ljspeech` is returned.
    - Four are `piper`, file|speaker|language|text, if the third holds codes of languages and the fourth is longer than
      the second.
    - Other lines of fewer than two or more than three columns are `ljspeech`, which reports them.
    - Three are `ljspeech` if in more than half of the lines the second is a text: of more than three words, ending like
      a sentence, not a plain name, or equal to the third but for case and punctuation. Lines with another count of
      columns or an empty third one count as such: Piper has none.
    - Three are `piper` if the first line begins with a file with its suffix, no second column is a text, and speakers
      come more than once.

    Raises a `LockstepError` for three columns that could be either, with the first such line and both readings, and for
    columns that do not hold what LJSpeech's do.
    """
    if (path := find_table(data)) is None:
        return ""
    lines = sampled_lines(path)
    header = {KIND_OF.get(column_name(value)) for _, values in lines[:1] for value in values}
    if (lines and len(lines[0][1]) == 1) or (header & {"text", "normalised"} and header & {"file", "id"}):
        return ""
    widths, with_suffix = Counter(len(values) for _, values in lines), bool(lines) and is_audio(lines[0][1][0])
    if with_suffix and 2 * widths[2] > len(lines):
        return "piper"
    second, third, fourth = (_column(lines, position) for position in (1, 2, 3))
    if with_suffix and widths[4] == len(lines) and _bytes(fourth) > _bytes(second):
        if _kind(third, fourth) == "language" != _kind(second, fourth):
            return "piper"
    ambiguous = [line for line in lines if len(line[1]) == 3 and not _is_text(line[1])]
    if 2 * len(ambiguous) < len(lines) or not widths[3]:
        if usual_width(lines) == max(widths, default=0) <= 5:  # else `LJSpeech.read` reports the line
            _check_kinds(path, lines, "file" if with_suffix else "id")
        return "ljspeech"
    if with_suffix and len(ambiguous) == len(lines) > len({*second}):
        return "piper"
    location, values = ambiguous[0]
    raise LockstepError(
        location, found=f"three columns that can be read in two ways: {'|'.join(values)[:120]!r}",
        expected=f"text {values[1][:40]!r} and the same in words (ljspeech), or speaker {values[1][:40]!r} (piper)",
        fix="choose one: --layout ljspeech or --layout piper, or --columns file=0,speaker=1,text=2",
    )


def sampled_lines(path: Path) -> list[_Line]:
    """Return the first `_SAMPLED_LINES` of a list."""
    lines = islice(filled_lines(path), _SAMPLED_LINES)
    return [(location, [value.strip() for value in line.split("|")]) for location, line in lines]


def usual_width(lines: Sequence[_Line]) -> int:
    """Return the most frequent count of columns; the larger of two equally frequent ones."""
    widths = Counter(len(values) for _, values in lines)
    return max(widths, key=lambda width: (widths[width], width), default=0)


def _is_text(columns: list[str]) -> bool:
    """Whether the second of three columns is a text instead of a speaker."""
    _, second, third = columns
    if not third or _is_sentence(second) or name_problem(second) is not None:
        return True
    return unicodedata.category(second[-1]) == "Po" or _letters(second) == _letters(third)


def _is_sentence(text: str) -> bool:
    return len(text.split()) > _LONGEST_NAME_WORDS


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _column(lines: Sequence[_Line], position: int, beside: int = 0) -> list[str]:
    """Return a column's values that are not empty; with `beside`, only from lines with a value in that column."""
    long_enough = (values for _, values in lines if max(position, beside) < len(values))
    return [values[position] for values in long_enough if values[position] and (values[beside] or not beside)]


def _bytes(values: Sequence[str]) -> int:
    return len("".join(values).encode())


def _kind(values: Sequence[str], texts: Sequence[str]) -> str:
    """Infer what a column holds: `text`, `speaker`, `language`, or `amount`, which includes times and files.

    texts: the values of a column of texts.
    """
    if not any(character.isalpha() for value in values for character in value):
        return "speaker" if values and all(map(str.isdecimal, values)) else "amount"
    if all(map(is_audio, values)):
        return "amount"
    if all(map(is_language, {*values})):
        return "language"
    is_few = 2 * len({*values}) < min(len(values), len({*texts}))
    is_short = _LABEL_RATIO * _bytes(values) * len(texts) < _bytes(texts) * len(values)
    return "speaker" if is_few or is_short else "text"


def _varies_within_texts(values: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether texts often have several values beside them, like prompts that several speakers read."""
    return 2 * len({*zip(texts, values, strict=True)}) > 3 * len({*texts})


def _may_be_speakers(values: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether values may be names of speakers; a small corpus may have a different one for each clip."""
    all_differ = len({*values}) == len(values) >= _ENOUGH_CLIPS
    is_name = 2 * len({*values}) <= len(values) or not (all_differ or any(map(_is_sentence, values)))
    return {"text": is_name, "speaker": True}.get(_kind(values, texts), False)


def _check_kinds(path: Path, lines: Sequence[_Line], first: str) -> None:
    """Raise a `LockstepError` if columns from the third on do not fit `id|text|normalised|speaker|language`.

    first: kind of the first column, `file` or `id`, for the options that the message proposes. The letters of raw and
    normalised text are not compared: Chinese and its pinyin share none.
    """
    columns = [_column(lines, position) for position in range(usual_width(lines))]
    texts, third, fourth, fifth = (*columns[1:5], [], [], [], [])[:4]
    raw_texts = _column(lines, 1, beside=2)
    is_label = _varies_within_texts(_column(lines, 2, beside=1), raw_texts)
    checks = (
        ("third", "the text in words", third, not is_label and _kind(third, raw_texts) == "text"),
        ("fourth", "a speaker", fourth, _may_be_speakers(fourth, texts)),
        ("fifth", "a language", fifth, _kind(fifth, texts) == "language"),
    )
    wrong = [(ordinal, expected, values) for ordinal, expected, values, fits in checks if values and not fits]
    if not wrong:
        return
    ordinal, expected, values = wrong[0]
    longest = max(columns[1:], key=_bytes)
    texts = texts if _kind(texts, longest) == "text" else longest
    kinds = [first]
    for column in columns[1:]:
        kind = "speaker" if column is third and is_label else _kind(column, texts).replace("text", "normalised")
        kinds.append("text" if column is texts else kind)
    options = [
        ",".join(f"{kind}={n}" for n, kind in enumerate(kinds) if kind in named and kind not in kinds[:n])
        for named in ((first, "text", "normalised", "speaker", "language"), (first, "text"))
    ]
    raise LockstepError(
        f"{path}:1",
        found=f"a {ordinal} column such as {values[0][:40]!r}, {len({*values})} values in {len(values)} lines",
        expected=f"{expected} (ljspeech); the columns look like {'|'.join(kinds)}",
        fix=f"choose one: {' or '.join(f'--columns {text}' for text in dict.fromkeys(options))}, or --layout ljspeech",
    )
