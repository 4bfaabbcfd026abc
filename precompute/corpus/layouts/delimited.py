"""Lists of files and texts in columns: Piper's, with a header, Common Voice's, and any whose columns are named."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import clip_ids, source_of, without_suffix
from xtts.precompute.corpus.layouts.layout import checked_clip, folder_of
from xtts.precompute.corpus.layouts.text_columns import (
    HEADER_NAMES,
    KIND_OF,
    METADATA_FILE,
    TABLE_SUFFIXES,
    reading_of,
    table_of,
)
from xtts.precompute.corpus.text_lines import filled_lines, first_line
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

COLUMNS = ("id", "file", "text", "normalised", "speaker", "language")
"""What `--columns` may name."""
_FOLDERS = ("", "wav", "clips", "audio", "wavs")
"""Where the audio of a list may lie, beside the list; a missing one is said to lie in the last."""
_EXAMPLE = "--columns file=0,speaker=1,text=2"
PIPER_COLUMNS = {2: ("file", "text"), 3: ("file", "speaker", "text"), 4: ("file", "speaker", "language", "text")}
"""Of a line of so many columns that nothing names."""


class Piper:
    """`file|text`, `file|speaker|text` or `file|speaker|language|text`, without a header.

    The file may be without its suffix.
    """

    name, expected = "piper", "lines of clips"

    def matches(self, data: Path) -> bool:
        """Whether `reading_of` its list says so."""
        path = table_of(data)
        return path is not None and reading_of(path) == self.name

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their lines."""
        path = data if data.is_file() else data / METADATA_FILE
        place, first = next(_split(path, "|"), ("", ["", ""]))
        names = PIPER_COLUMNS.get(len(first))
        if names is None:
            found = f"{len(first)} column{'s'[: len(first) != 1]}"
            expected = "file|text, file|speaker|text or file|speaker|language|text"
            raise LockstepError(place, found=found, expected=expected)
        where = {name: column for column, name in enumerate(names)}
        return _clips(folder_of(data), partial(_split, path, "|"), where, width=len(first))


@dataclass(frozen=True)
class WithHeader:
    """Columns that the first line names, by `HEADER_NAMES`; the first of a kind counts."""

    name: str
    list_name: str
    expected: str = "lines below the header"

    def matches(self, data: Path) -> bool:
        """Whether the first line of its list names one column of texts, and one of files or ids."""
        path = data if data.is_file() else data / self.list_name
        if path.suffix not in TABLE_SUFFIXES or not path.is_file():
            return False
        header, where = self._header(path)
        texts = sum(KIND_OF.get(name) == "text" for name in header)
        return "text" in where and texts <= 1 and not where.keys().isdisjoint(("file", "id"))

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their lines."""
        path = data if data.is_file() else data / self.list_name
        header, where = self._header(path)
        for kinds in (("text",), ("file", "id")):
            if where.keys().isdisjoint(kinds):
                expected = f"one of {', '.join(HEADER_NAMES[kinds[0]])}"
                raise LockstepError(f"{path}:1", found=f"no column of a {kinds[0]}", expected=expected)
        rows = partial(_split, path, _delimiter(path), skip=1)
        return _clips(folder_of(data), rows, where, width=len(header))

    @staticmethod
    def _header(path: Path) -> tuple[list[str], dict[str, int]]:
        """The names of the columns, and the numbers of those that are read, by kind."""
        header = [name.lower() for name in next(_split(path, _delimiter(path)), ("", []))[1]]
        where = {KIND_OF[name]: column for column, name in reversed(list(enumerate(header))) if name in KIND_OF}
        if "normalised" in where:
            where.setdefault("text", where["normalised"])
        return header, where


TABLE, COMMON_VOICE = WithHeader("table", METADATA_FILE), WithHeader("common-voice", "validated.tsv")


@dataclass(frozen=True)
class NamedColumns:
    """A CSV or TSV file whose columns the user names; not looked for."""

    columns: Mapping[str, str]
    """One of `COLUMNS` to the place of its column, from 0, or to its name in the first line."""
    name: str = "columns"
    expected: str = "lines of clips"

    def matches(self, data: Path) -> bool:
        """Never: only the user knows."""
        return False

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their lines."""
        if "text" not in self.columns or not {"id", "file"} & self.columns.keys():
            found = ",".join(f"{kind}={name}" for kind, name in self.columns.items())
            raise LockstepError("--columns", found=f"{found[:80]!r}", expected="text, and id or file", fix=_EXAMPLE)
        path = _only_table(data)
        delimiter = _delimiter(path)
        by_name = [name for name in self.columns.values() if not name.isdecimal()]
        first = next(_split(path, delimiter), ("", []))[1]
        header = first if by_name else []
        for name in by_name:
            if name not in header:
                found = f"no column {name[:40]!r}"
                raise LockstepError(str(path), found=found, expected=f"one of {header!r:.120}")
        where = {kind: header.index(name) if name in by_name else int(name) for kind, name in self.columns.items()}
        width = len(first) if max(where.values()) < len(first) else None
        return _clips(folder_of(data), partial(_split, path, delimiter, skip=bool(header)), where, width=width)


def parse_columns(text: str) -> dict[str, str]:
    """One of `COLUMNS` to its column, from `id=0,speaker=1,text=2`; a `LockstepError` for what says no such thing."""
    columns: dict[str, str] = {}
    for part in text.split(","):
        kind, _, name = (piece.strip() for piece in part.partition("="))
        numeric = re.fullmatch("[+-]?[0-9]+", name) is not None
        if kind not in COLUMNS or kind in columns or not name or (numeric and not re.fullmatch("[0-9]{1,4}", name)):
            expected = f"{' or '.join(COLUMNS)}, each once, and the number of its column from 0 or its name"
            raise LockstepError("--columns", found=f"{part[:60]!r}", expected=expected, fix=f"as in {_EXAMPLE}")
        columns[kind] = name
    return columns


def _only_table(data: Path) -> Path:
    """The file that lists the clips: `data`, `metadata.csv` in it, or the only CSV or TSV file in it."""
    if not data.is_dir() or (data / METADATA_FILE).exists():
        return data / METADATA_FILE if data.is_dir() else data
    tables = sorted(path for path in data.iterdir() if path.suffix in (".csv", ".tsv") and path.is_file())
    if len(tables) != 1:
        names = ", ".join(path.name for path in tables[:3])
        found = f"{len(tables)} CSV or TSV files{': ' * bool(names)}{names}"
        raise LockstepError(str(data), found=found, expected="one", fix="give the file itself to --data")
    return tables[0]


def _delimiter(path: Path) -> str:
    """What is between the columns: `|`, else a tab, else the first semicolon or comma, as the first line has it."""
    line = first_line(path)
    return next((mark for mark in "|\t" if mark in line), next((mark for mark in line if mark in ";,"), ","))


def _split(path: Path, delimiter: str, *, skip: int = 0) -> Iterator[tuple[str, list[str]]]:
    """(`FILE:NUMBER`, columns) of each line after so many; quotes mark columns only where no `|` or tab is between."""
    if delimiter in ",;":
        rows = _unquoted(path, delimiter)
    else:
        rows = ((where, line.split(delimiter)) for where, line in filled_lines(path))
    return ((where, [column.strip() for column in columns]) for where, columns in islice(rows, skip, None))


def _unquoted(path: Path, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """A row may run over several lines; it is told by its first one."""
    places = list[str]()

    def lines() -> Iterator[str]:
        for where, line in filled_lines(path):
            places.append(where)
            yield line + "\n"

    try:
        for row in csv.reader(lines(), delimiter=delimiter, strict=True):
            yield places[0], row
            places.clear()
    except csv.Error as error:
        raise LockstepError((places or [str(path)])[0], found=f"no CSV ({error})", fix="quote it") from None


def _clips(
    root: Path, rows: Callable[[], Iterator[tuple[str, list[str]]]], where: Mapping[str, int], *,
    width: int | None = None,
) -> Iterator[Clip]:  # fmt: skip
    """The clips of rows with these columns, which are read twice.

    Without an id of its own a clip is called like its file (`clip_ids`). `width` is the number of columns that every
    row has to have; None for at least those that are named.
    """
    needed, file = max(where.values()) + 1, where.get("file", where.get("id", 0))

    def name(row: list[str]) -> str:
        return PurePosixPath(row[file]).as_posix() if row[file] else ""

    def names() -> Iterator[str]:
        for place, row in rows():
            if len(row) != width if width else len(row) < needed:
                least = f"at least {needed}, for columns 0 to {needed - 1}"
                expected = f"{width} as in the first line" if width else least
                raise LockstepError(place, found=f"{len(row)} column{'s'[: len(row) != 1]}", expected=expected)
            yield without_suffix(name(row))

    ids = clip_ids(names())
    for place, row in rows():
        said = {kind: row[column] for kind, column in where.items()}
        own = said.get("id") if "file" in where else None
        yield checked_clip(
            own or ids[without_suffix(name(row))], said.get("normalised") or said["text"],
            source_of(root, name(row), _FOLDERS, place), where=place, speaker=said.get("speaker", ""),
            normalised=bool(said.get("normalised")), language=said.get("language", ""),
        )  # fmt: skip
