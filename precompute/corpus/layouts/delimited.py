"""Lists of files and texts in columns: Piper's, Coqui's, F5's, and any other whose columns are named."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import clip_ids, source_of, without_suffix
from xtts.precompute.corpus.layouts.layout import ClipList, folder_of
from xtts.precompute.corpus.layouts.text_columns import (
    METADATA_FILE,
    header_of,
    layout_of_header,
    names_files,
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
_HEADER_NAMES = {
    "audio_file": "file", "audio": "file", "text": "text", "speaker_name": "speaker", "speaker": "speaker",
    "language": "language",
}  # fmt: skip
_Rows = list[tuple[str, list[str]]]


class Piper:
    """`file|text` or `file|speaker|text`, without a header; the file with its suffix or without."""

    name = "piper"

    def matches(self, data: Path) -> bool:
        """Whether `reading_of` its list says so."""
        path = table_of(data)
        return path is not None and names_files(path) and reading_of(path) == self.name

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of their lines."""
        path = data if data.is_file() else data / METADATA_FILE
        rows = _split(path, "|")
        width = len(rows[0][1]) if rows else 2
        where = {2: {"file": 0, "text": 1}, 3: {"file": 0, "speaker": 1, "text": 2}}.get(width)
        if where is None:
            found = f"{width} column{'s'[: width != 1]}"
            raise LockstepError(rows[0][0], found=found, expected="file|text or file|speaker|text")
        return _read_rows(folder_of(data), path, rows, where, limit=limit, width=width)


@dataclass(frozen=True)
class WithHeader:
    """Columns with `|` between them, whose first line names them: `audio_file|text|speaker_name` or `audio|text`."""

    name: str

    def matches(self, data: Path) -> bool:
        """Whether the first line of its list is such a header."""
        path = table_of(data)
        return path is not None and layout_of_header(header_of(path)) == self.name

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of their lines."""
        path = data if data.is_file() else data / METADATA_FILE
        rows, header = _split(path, "|"), header_of(path)
        if not header:
            found = f"{'|'.join(rows[0][1])[:80]!r}" if rows else "no lines"
            raise LockstepError(f"{path}:1", found=found, expected="a header such as audio_file|text|speaker_name")
        where = {_HEADER_NAMES[name]: place for place, name in reversed(list(enumerate(header)))
                 if name in _HEADER_NAMES}  # fmt: skip
        return _read_rows(folder_of(data), path, rows[1:], where, limit=limit, width=len(header))


COQUI, F5 = WithHeader("coqui"), WithHeader("f5")


@dataclass(frozen=True)
class NamedColumns:
    """A CSV or TSV file whose columns the user names; not looked for."""

    columns: Mapping[str, str]
    """One of `COLUMNS` to the place of its column, from 0, or to its name in the first line."""
    name: str = "columns"

    def matches(self, data: Path) -> bool:
        """Never: only the user knows."""
        return False

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of their lines."""
        if "text" not in self.columns or not {"id", "file"} & self.columns.keys():
            found = ",".join(f"{kind}={name}" for kind, name in self.columns.items())
            raise LockstepError("--columns", found=f"{found[:80]!r}", expected="text, and id or file", fix=_EXAMPLE)
        path = _only_table(data)
        rows = _split(path, _delimiter(path))
        by_name = [name for name in self.columns.values() if not name.isdecimal()]
        header, rows = (rows[0][1], rows[1:]) if by_name and rows else ([], rows)
        for name in by_name:
            if name not in header:
                found = f"no column {name[:40]!r}"
                raise LockstepError(str(path), found=found, expected=f"one of {header!r:.120}")
        where = {kind: header.index(name) if name in by_name else int(name) for kind, name in self.columns.items()}
        return _read_rows(folder_of(data), path, rows, where, limit=limit)


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
    line = first_line(path)
    return next((mark for mark in "|\t" if mark in line), ",")


def _split(path: Path, delimiter: str) -> _Rows:
    """(`FILE:NUMBER`, columns) of each line; quotes are marks of the text, but around columns with commas between."""
    if delimiter != ",":
        return [(where, [column.strip() for column in line.split(delimiter)]) for where, line in filled_lines(path)]
    lines = list(filled_lines(path))
    return list(_unquoted(path, [line for _, line in lines], [where for where, _ in lines]))


def _unquoted(path: Path, lines: Sequence[str], places: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    start = 0
    try:
        for row in reader:
            yield places[start], [column.strip() for column in row]
            start = reader.line_num
    except csv.Error as error:
        raise LockstepError(places[min(start, len(places) - 1)], found=f"no CSV ({error})", fix="quote it") from None


def _read_rows(
    root: Path, path: Path, rows: _Rows, where: Mapping[str, int], *, limit: int | None, width: int | None = None
) -> list[Clip]:
    """The clips of rows with these columns.

    Without an id of its own a clip is called like its file (`clip_ids`). `width` is the number of columns that every
    row has to have; None for at least those that are named.
    """
    needed = max(where.values()) + 1
    for place, row in rows:
        if len(row) != width if width else len(row) < needed:
            expected = f"{width} as in the first line" if width else f"at least {needed}, for columns 0 to {needed - 1}"
            raise LockstepError(place, found=f"{len(row)} column{'s'[: len(row) != 1]}", expected=expected)
    clips, file = ClipList(limit), where.get("file", where.get("id", 0))
    names = [PurePosixPath(row[file]).as_posix() if row[file] else "" for _, row in rows]
    ids = clip_ids(without_suffix(name) for name in names)
    for (place, row), name in zip(rows, names, strict=True):
        if clips.is_full:
            break
        said = {kind: row[column] for kind, column in where.items()}
        source = source_of(root, name, _FOLDERS, place)
        own = said.get("id") if "file" in where else None
        clips.add(
            own or ids[without_suffix(name)], said.get("normalised") or said["text"],
            source, where=place, speaker=said.get("speaker", ""), normalised=bool(said.get("normalised")),
            language=said.get("language", ""),
        )  # fmt: skip
    return clips.checked(path, "lines of clips")
