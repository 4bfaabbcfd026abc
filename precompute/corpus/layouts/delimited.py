"""Lists of files and texts in columns: Piper's, Coqui's, F5's, Common Voice's, and any whose columns are named."""

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
_COMMON_VOICE = "validated.tsv"
_COMMON_VOICE_NAMES = {"client_id": "speaker", "path": "file", "sentence": "text", "locale": "language"}
"""The last one may be missing."""


class Piper:
    """`file|text` or `file|speaker|text`, without a header; the file with its suffix or without."""

    name, expected = "piper", "lines of clips"

    def matches(self, data: Path) -> bool:
        """Whether `reading_of` its list says so."""
        path = table_of(data)
        return path is not None and names_files(path) and reading_of(path) == self.name

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their lines."""
        path = data if data.is_file() else data / METADATA_FILE
        place, first = next(_split(path, "|"), ("", ["", ""]))
        where = {2: {"file": 0, "text": 1}, 3: {"file": 0, "speaker": 1, "text": 2}}.get(len(first))
        if where is None:
            found = f"{len(first)} column{'s'[: len(first) != 1]}"
            raise LockstepError(place, found=found, expected="file|text or file|speaker|text")
        return _clips(folder_of(data), partial(_split, path, "|"), where, width=len(first))


@dataclass(frozen=True)
class WithHeader:
    """Columns with `|` between them, whose first line names them: `audio_file|text|speaker_name` or `audio|text`."""

    name: str
    expected: str = "lines of clips"

    def matches(self, data: Path) -> bool:
        """Whether the first line of its list is such a header."""
        path = table_of(data)
        return path is not None and layout_of_header(header_of(path)) == self.name

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their lines."""
        path = data if data.is_file() else data / METADATA_FILE
        header = header_of(path)
        if not header:
            found = f"{first_line(path)[:80]!r}"
            raise LockstepError(f"{path}:1", found=found, expected="a header such as audio_file|text|speaker_name")
        where = {_HEADER_NAMES[name]: place for place, name in reversed(list(enumerate(header)))
                 if name in _HEADER_NAMES}  # fmt: skip
        return _clips(folder_of(data), partial(_split, path, "|", skip=1), where, width=len(header))


COQUI, F5 = WithHeader("coqui"), WithHeader("f5")


class CommonVoice:
    """Common Voice's `validated.tsv` with a header, audio in `clips/`."""

    name, expected = "common-voice", "lines below the header"

    def matches(self, data: Path) -> bool:
        """A folder with `validated.tsv`, or a TSV file with Common Voice's columns."""
        if data.is_dir():
            return (data / _COMMON_VOICE).exists()
        return data.suffix == ".tsv" and set(_COMMON_VOICE_NAMES) - {"locale"} <= set(_tabbed_header(data))

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their lines."""
        path = data if data.is_file() else data / _COMMON_VOICE
        header = _tabbed_header(path)
        where = {kind: header.index(name) for name, kind in _COMMON_VOICE_NAMES.items() if name in header}
        for name, kind in _COMMON_VOICE_NAMES.items():
            if kind not in where and name != "locale":
                raise LockstepError(f"{path}:1", found=f"no column {name}", expected="the header of Common Voice")
        return _clips(folder_of(data), partial(_split, path, "\t", skip=1), where, width=len(header))


def _tabbed_header(path: Path) -> list[str]:
    return [name.strip() for name in first_line(path).split("\t")]


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
        line = first_line(path)
        delimiter = next((mark for mark in "|\t" if mark in line), ",")
        by_name = [name for name in self.columns.values() if not name.isdecimal()]
        header = next(_split(path, delimiter), ("", []))[1] if by_name else []
        for name in by_name:
            if name not in header:
                found = f"no column {name[:40]!r}"
                raise LockstepError(str(path), found=found, expected=f"one of {header!r:.120}")
        where = {kind: header.index(name) if name in by_name else int(name) for kind, name in self.columns.items()}
        return _clips(folder_of(data), partial(_split, path, delimiter, skip=bool(header)), where)


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


def _split(path: Path, delimiter: str, *, skip: int = 0) -> Iterator[tuple[str, list[str]]]:
    """(`FILE:NUMBER`, columns) of each line after so many; quotes mark columns only where commas are between them."""
    if delimiter == ",":
        rows = _unquoted(path)
    else:
        rows = ((where, line.split(delimiter)) for where, line in filled_lines(path))
    return ((where, [column.strip() for column in columns]) for where, columns in islice(rows, skip, None))


def _unquoted(path: Path) -> Iterator[tuple[str, list[str]]]:
    """A row may run over several lines; it is told by its first one."""
    places = list[str]()

    def lines() -> Iterator[str]:
        for where, line in filled_lines(path):
            places.append(where)
            yield line + "\n"

    try:
        for row in csv.reader(lines(), strict=True):
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
