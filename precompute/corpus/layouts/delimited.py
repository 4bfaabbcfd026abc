"""Lists with columns: Piper's, tables with a header, Common Voice's, and files whose columns the user names."""

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
    layout_of,
)
from xtts.precompute.corpus.text_lines import filled_lines, first_line
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

COLUMNS = ("id", "file", "text", "normalised", "speaker", "language")
"""Kinds of columns that `--columns` may name."""
_FOLDERS = ("", "wav", "clips", "audio", "wavs")
"""Folders beside the list in which audio is looked for; a missing file gets a path in the last."""
_EXAMPLE = "--columns file=0,speaker=1,text=2"
PIPER_COLUMNS = {2: ("file", "text"), 3: ("file", "speaker", "text"), 4: ("file", "speaker", "language", "text")}
"""Kinds of the columns of a line without a header, by their count."""


class Piper:
    """Lines `file|text`, `file|speaker|text` or `file|speaker|language|text` without a header.

    The file may lack its suffix.
    """

    name, expected = "piper", "lines of clips"

    def matches(self, data: Path) -> bool:
        """Whether `layout_of` takes the list for Piper's."""
        return layout_of(data) == self.name

    def read(self, data: Path) -> Iterator[Clip]:
        """Yield the clips in the order of their lines."""
        path = data if data.is_file() else data / METADATA_FILE
        location, first = next(_split(path, "|"), ("", ["", ""]))
        names = PIPER_COLUMNS.get(len(first))
        if names is None:
            problem = f"{len(first)} column{'s'[: len(first) != 1]}"
            expected = "file|text, file|speaker|text or file|speaker|language|text"
            raise LockstepError(location, found=problem, expected=expected)
        columns = {name: column for column, name in enumerate(names)}
        return _clips(folder_of(data), partial(_split, path, "|"), columns, width=len(first))


@dataclass(frozen=True)
class WithHeader:
    """A table whose first line names its columns, by `HEADER_NAMES`; of two columns of a kind the first is read."""

    name: str
    list_name: str
    expected: str = "lines below the header"

    def matches(self, data: Path) -> bool:
        """Whether the first line of the list names one column of texts, and one of files or ids."""
        path = data if data.is_file() else data / self.list_name
        if path.suffix not in TABLE_SUFFIXES or not path.is_file():
            return False
        header, columns = self._header(path)
        texts = sum(KIND_OF.get(name) == "text" for name in header)
        return "text" in columns and texts <= 1 and not columns.keys().isdisjoint(("file", "id"))

    def read(self, data: Path) -> Iterator[Clip]:
        """Yield the clips in the order of their lines."""
        path = data if data.is_file() else data / self.list_name
        header, columns = self._header(path)
        for kinds in (("text",), ("file", "id")):
            if columns.keys().isdisjoint(kinds):
                expected = f"one of {', '.join(HEADER_NAMES[kinds[0]])}"
                raise LockstepError(f"{path}:1", found=f"no column of a {kinds[0]}", expected=expected)
        rows = partial(_split, path, _delimiter(path), skip=1)
        return _clips(folder_of(data), rows, columns, width=len(header))

    @staticmethod
    def _header(path: Path) -> tuple[list[str], dict[str, int]]:
        """Return the names of all columns, and the position of each column to read by its kind."""
        header = [name.lower() for name in next(_split(path, _delimiter(path)), ("", []))[1]]
        columns = {KIND_OF[name]: column for column, name in reversed(list(enumerate(header))) if name in KIND_OF}
        if "normalised" in columns:
            columns.setdefault("text", columns["normalised"])
        return header, columns


TABLE, COMMON_VOICE = WithHeader("table", METADATA_FILE), WithHeader("common-voice", "validated.tsv")


@dataclass(frozen=True)
class NamedColumns:
    """A CSV or TSV file whose columns the user names."""

    columns: Mapping[str, str]
    """One of `COLUMNS` to the position of its column, from 0, or to its name in the first line."""
    name: str = "columns"
    expected: str = "lines of clips"

    def matches(self, data: Path) -> bool:
        """Return False: this layout is never detected."""
        return False

    def read(self, data: Path) -> Iterator[Clip]:
        """Yield the clips in the order of their lines."""
        if "text" not in self.columns or not {"id", "file"} & self.columns.keys():
            option = ",".join(f"{kind}={name}" for kind, name in self.columns.items())
            raise LockstepError("--columns", found=f"{option[:80]!r}", expected="text, and id or file", fix=_EXAMPLE)
        path = _only_table(data)
        delimiter = _delimiter(path)
        by_name = [name for name in self.columns.values() if not name.isdecimal()]
        first = next(_split(path, delimiter), ("", []))[1]
        header = first if by_name else []
        for name in by_name:
            if name not in header:
                raise LockstepError(str(path), found=f"no column {name[:40]!r}", expected=f"one of {header!r:.120}")
        columns = {kind: header.index(name) if name in by_name else int(name) for kind, name in self.columns.items()}
        width = len(first) if max(columns.values()) < len(first) else None
        return _clips(folder_of(data), partial(_split, path, delimiter, skip=bool(header)), columns, width=width)


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


def _only_table(data: Path) -> Path:
    """Return the file that lists the clips: `data`, its `metadata.csv`, or the only CSV or TSV file in it."""
    if not data.is_dir() or (data / METADATA_FILE).exists():
        return data / METADATA_FILE if data.is_dir() else data
    tables = sorted(path for path in data.iterdir() if path.suffix in (".csv", ".tsv") and path.is_file())
    if len(tables) != 1:
        names = ", ".join(path.name for path in tables[:3])
        problem = f"{len(tables)} CSV or TSV files{': ' * bool(names)}{names}"
        raise LockstepError(str(data), found=problem, expected="one", fix="give the file itself to --data")
    return tables[0]


def _delimiter(path: Path) -> str:
    """Return the delimiter in the first line: `|`, else a tab, else whichever of `,` and `;` comes first."""
    line = first_line(path)
    return next((mark for mark in "|\t" if mark in line), next((mark for mark in line if mark in ";,"), ","))


def _split(path: Path, delimiter: str, *, skip: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield (location, columns) of each line after the first `skip`; quotes are read unless `|` or a tab delimits."""
    if delimiter in ",;":
        rows = _csv_rows(path, delimiter)
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
        raise LockstepError((locations or [str(path)])[0], found=f"no CSV ({error})", fix="quote it") from None


def _clips(
    root: Path, rows: Callable[[], Iterator[tuple[str, list[str]]]], columns: Mapping[str, int], *,
    width: int | None = None,
) -> Iterator[Clip]:  # fmt: skip
    """Yield the clips of `rows`, which are read twice; `columns` maps a kind to its column's position.

    A clip without an id is named after its file (`clip_ids`). width: columns of every row; None to require only
    those of `columns`.
    """
    needed, file = max(columns.values()) + 1, columns.get("file", columns.get("id", 0))

    def name(row: list[str]) -> str:
        return PurePosixPath(row[file]).as_posix() if row[file] else ""

    def names() -> Iterator[str]:
        for location, row in rows():
            if len(row) != width if width else len(row) < needed:
                least = f"at least {needed}, for columns 0 to {needed - 1}"
                expected = f"{width} as in the first line" if width else least
                raise LockstepError(location, found=f"{len(row)} column{'s'[: len(row) != 1]}", expected=expected)
            yield without_suffix(name(row))

    ids = clip_ids(names())
    for location, row in rows():
        values = {kind: row[column] for kind, column in columns.items()}
        own_id = values.get("id") if "file" in columns else None
        yield checked_clip(
            own_id or ids[without_suffix(name(row))], values.get("normalised") or values["text"],
            source_of(root, name(row), _FOLDERS, location), location=location, speaker=values.get("speaker", ""),
            normalised=bool(values.get("normalised")), language=values.get("language", ""),
        )  # fmt: skip
