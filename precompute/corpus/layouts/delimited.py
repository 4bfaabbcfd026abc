"""Lists with columns: Piper's, tables with a header, Common Voice's, and files whose columns the user names."""

import csv
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import FilesByName, clip_ids, posix, source_of, without_suffix
from xtts.precompute.corpus.layouts.layout import Layout, checked_clip
from xtts.precompute.corpus.layouts.text_columns import (
    HEADER_NAMES,
    KIND_OF,
    METADATA_FILE,
    TABLE_SUFFIXES,
    column_name,
    find_table,
    layout_of,
)
from xtts.precompute.corpus.text_lines import filled_lines, first_line
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

COLUMNS = ("id", "file", "text", "normalised", "speaker", "language")
"""Kinds of columns that `--columns` may name."""
_FOLDERS = ("", "wav", "clips", "audio", "wavs")
"""Folders beside the list that are searched for audio; a missing file gets a path in the last."""
_EXAMPLE = "--columns file=0,speaker=1,text=2"
PIPER_COLUMNS = {2: ("file", "text"), 3: ("file", "speaker", "text"), 4: ("file", "speaker", "language", "text")}
"""Kinds of the columns of a line without a header, by their count."""


def _read_piper(data: Path) -> Iterator[Clip]:
    """Yield the clips of lines `file|text`, `file|speaker|text` or `file|speaker|language|text` without a header.

    The file may lack its suffix.
    """
    path = data if data.is_file() else data / METADATA_FILE
    location, first = next(_split(path, "|"), ("", ["", ""]))
    names = PIPER_COLUMNS.get(len(first))
    if names is None:
        problem = f"{len(first)} column{'s'[: len(first) != 1]}"
        expected = "file|text, file|speaker|text or file|speaker|language|text"
        raise LockstepError(location, found=problem, expected=expected)
    columns = {name: column for column, name in enumerate(names)}
    return _clips(path, "|", columns, width=len(first))


PIPER = Layout(
    "piper", "lines of clips", lambda data: layout_of(data) == "piper", _read_piper, speaker_folders=True
)


_QUOTED = re.compile(r"""\s*\(?\s*"?([^"\s](?:[^"]*[^"\s])?)"?\s+"(.*)"\s*\)?\s*""")
"""A name and a text in quotes, as `"x.wav" "Text."` or Festival's `( x "Text." )`."""
_QUOTED_LISTS = ("orthographic-transcript.txt", "txt.done.data")


def _quoted_list(data: Path) -> Path | None:
    """Return the file of lines of a name and a quoted text: `data`, or one of the usual names; None without."""
    paths = [data] if data.is_file() and data.suffix in TABLE_SUFFIXES else [data / name for name in _QUOTED_LISTS]
    return next((path for path in paths if path.is_file() and _QUOTED.fullmatch(first_line(path))), None)


def _read_quoted(data: Path) -> Iterator[Clip]:
    path = _quoted_list(data)
    if path is None:
        raise LockstepError(str(data), found="no list of names and quoted texts", expected=f"{_QUOTED_LISTS[0]}")
    return _clips(path, '"', {"file": 0, "text": 1}, width=2)


QUOTED = Layout(
    "quoted", 'lines of "name" "text"', lambda data: _quoted_list(data) is not None, _read_quoted, speaker_folders=True
)


def _with_header(name: str, list_name: str, *, speaker_folders: bool) -> Layout:
    """Return the layout of a table called `list_name` whose first line names its columns, by `HEADER_NAMES`."""
    matches, read = partial(_has_header, list_name), partial(_read_below_header, list_name)
    return Layout(name, "lines below the header", matches, read, speaker_folders=speaker_folders)


def _has_header(list_name: str, data: Path) -> bool:
    """Whether the first line of the list names one column of texts, and one of files or ids."""
    path = data if data.is_file() else data / list_name
    if path.suffix.lower() not in TABLE_SUFFIXES or not path.is_file():
        return False
    header, columns = _header(path)
    texts = sum(KIND_OF.get(name) == "text" for name in header)
    return "text" in columns and texts <= 1 and not columns.keys().isdisjoint(("file", "id"))


def _read_below_header(list_name: str, data: Path) -> Iterator[Clip]:
    path = data if data.is_file() else data / list_name
    header, columns = _header(path)
    for kinds in (("text",), ("file", "id")):
        if columns.keys().isdisjoint(kinds):
            expected = f"one of {', '.join(HEADER_NAMES[kinds[0]])}"
            raise LockstepError(f"{path}:1", found=f"no column of a {kinds[0]}", expected=expected)
    return _clips(path, _delimiter(path), columns, width=len(header), skip=1)


def _header(path: Path) -> tuple[list[str], dict[str, int]]:
    """Return the names of all columns, and the position of the first column of each kind."""
    header = [column_name(name) for name in next(_split(path, _delimiter(path)), ("", []))[1]]
    columns = {KIND_OF[name]: column for column, name in reversed(list(enumerate(header))) if name in KIND_OF}
    if "normalised" in columns:
        columns.setdefault("text", columns["normalised"])
    return header, columns


TABLE = _with_header("table", METADATA_FILE, speaker_folders=True)
COMMON_VOICE = _with_header("common-voice", "validated.tsv", speaker_folders=False)


def named_columns(columns: Mapping[str, str]) -> Layout:
    """Return the layout of a CSV or TSV file whose columns the user names; it is never detected.

    columns: one of `COLUMNS` to the position of its column, from 0, or to its name in the first line.
    """
    return Layout("columns", "lines of clips", lambda _: False, partial(_read_named, columns), speaker_folders=True)


def _read_named(named: Mapping[str, str], data: Path) -> Iterator[Clip]:
    if "text" not in named or not {"id", "file"} & named.keys():
        option = ",".join(f"{kind}={name}" for kind, name in named.items())
        raise LockstepError("--columns", found=f"{option[:80]!r}", expected="text, and id or file", fix=_EXAMPLE)
    path = find_table(data) or data
    delimiter = _delimiter(path)
    by_name = [name for name in named.values() if not name.isdecimal()]
    first = next(_split(path, delimiter), ("", []))[1]
    header = first if by_name else []
    for name in by_name:
        if name not in header:
            raise LockstepError(str(path), found=f"no column {name[:40]!r}", expected=f"one of {header!r:.120}")
    columns = {kind: header.index(name) if name in by_name else int(name) for kind, name in named.items()}
    width = len(first) if max(columns.values()) < len(first) else None
    return _clips(path, delimiter, columns, width=width, skip=bool(header))


def parse_columns(text: str) -> dict[str, str]:
    """Parse `id=0,speaker=1,text=2` into one of `COLUMNS` to its column; raise a `LockstepError` for anything else."""
    columns: dict[str, str] = {}
    for item in text.split(","):
        kind, _, name = (piece.strip() for piece in item.partition("="))
        numeric = re.fullmatch("[+-]?[0-9]+", name) is not None
        if kind not in COLUMNS or kind in columns or not name or (numeric and not re.fullmatch("[0-9]{1,4}", name)):
            expected = f"{' or '.join(COLUMNS)}, each once, and the number of its column from 0 or its name"
            raise LockstepError("--columns", found=f"{item[:60]!r}", expected=expected, fix=f"as in {_EXAMPLE}")
        columns[kind] = name
    return columns


def _delimiter(path: Path) -> str:
    """Return the delimiter in the first line: `|`, else a tab, else whichever of `,` and `;` comes first."""
    line = first_line(path)
    return next((mark for mark in "|\t" if mark in line), next((mark for mark in line if mark in ";,"), ","))


def _split(path: Path, delimiter: str, *, skip: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield (location, columns) of each line after the first `skip`; quotes are read unless `|` or a tab delimits."""
    if delimiter in ",;":
        rows = _csv_rows(path, delimiter)
    elif delimiter == '"':
        matches = ((location, line, _QUOTED.fullmatch(line)) for location, line in filled_lines(path))
        rows = ((location, [*match.groups()] if match else [line]) for location, line, match in matches)
    else:
        rows = ((location, line.split(delimiter)) for location, line in filled_lines(path))
    return ((location, [column.strip() for column in columns]) for location, columns in islice(rows, skip, None))


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (location, columns) of CSV rows, located by the first of their lines."""
    locations = list[str]()

    def lines() -> Iterator[str]:
        for location, line in filled_lines(path):
            locations.append(location)
            yield line + "\n"

    try:
        for row in csv.reader(lines(), delimiter=delimiter, strict=True):
            yield locations[0], row
            locations.clear()
    except csv.Error as error:
        raise LockstepError((locations or [str(path)])[0], found=f"not CSV ({error})", fix="quote it") from None


def _clips(
    path: Path, delimiter: str, columns: Mapping[str, int], *, width: int | None, skip: int = 0
) -> Iterator[Clip]:
    """Yield the clips of a list, which is read twice, in the order of its lines after the first `skip`.

    A clip without an id is named after its file (`clip_ids`). columns: kind to the column's position. width: columns of
    every row; None to require only those of `columns`.
    """
    needed, file = max(columns.values()) + 1, columns.get("file", columns.get("id", 0))

    def name(row: list[str]) -> str:
        return PurePosixPath(posix(row[file])).as_posix() if row[file] else ""

    def names() -> Iterator[str]:
        for location, row in _split(path, delimiter, skip=skip):
            if len(row) != width if width else len(row) < needed:
                least = f"at least {needed}, for columns 0 to {needed - 1}"
                expected = f"{width} as in the first line" if width else least
                raise LockstepError(location, found=f"{len(row)} column{'s'[: len(row) != 1]}", expected=expected)
            yield without_suffix(name(row))

    ids, files = clip_ids(names()), FilesByName(path.parent)
    for location, row in _split(path, delimiter, skip=skip):
        values = {kind: row[column] for kind, column in columns.items()}
        own_id = values.get("id") if "file" in columns else None
        source = files.anywhere(source_of(path.parent, name(row), _FOLDERS, location), name(row))
        yield checked_clip(
            own_id or ids[without_suffix(name(row))], values.get("normalised") or values["text"], source,
            location=location, speaker=values.get("speaker", ""), normalised=bool(values.get("normalised")),
            language=values.get("language", ""),
        )
