"""Data sets of Hugging Face: Parquet files with audio in them, or with the paths of audio files."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xtts.precompute.archives.parquet_files import (
    SUFFIX,
    BrokenParquet,
    holding_audio,
    member_of,
    open_parquet,
    row_values,
)
from xtts.precompute.corpus.corpus_files import check_inside, clip_ids, source_of, without_suffix
from xtts.precompute.corpus.layouts.layout import ClipList, folder_of
from xtts.precompute.corpus.layouts.parquet_columns import Columns, find_columns, unread_columns
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_FOLDERS = ("", "data")
"""Where a folder's Parquet files lie."""
_SPLIT = re.compile(
    r"(.+?)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?|(train|training|test|dev|val|valid|validation|eval|evaluation)(?:[-._]?\d+)?"
)
"""How files are called that hold a part of a data set."""
_KINDS = ("path", "text", "normalised", "speaker", "language", "id", "file")
"""Those of `Columns` that are read here."""
_MOST_CHARACTERS = 2**30
"""Of a file's texts and names, as of other lists."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What a file says of a clip."""

    where: str
    source: str
    number: int
    embedded: bool
    said: Mapping[str, str]
    """By the names of `Columns`."""


@dataclass(frozen=True)
class Parquet:
    """A file, a folder of files, or a folder with them in `data/`; of several splits those called train are read."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Those that the user names, as in `find_columns`."""
    name: str = "parquet"

    def matches(self, data: Path) -> bool:
        """A Parquet file, or a folder with some and without `metadata.csv`."""
        if data.is_file():
            return data.suffix == SUFFIX
        return bool(_files(data)) and not (data / METADATA_FILE).exists()

    def read(self, data: Path, limit: int | None) -> list[Clip]:
        """The clips in the order of their files and rows."""
        root, (files, _) = folder_of(data), _divided(data)
        ids, clips = clip_ids(self._names(root, files)), ClipList(limit)
        for row in (row for file in files for row in self._rows(root, file)):
            if clips.is_full:
                break
            _add(clips, row, root, ids, self.columns.get("file", ""))
        return clips.checked(data, f"files *{SUFFIX} with rows, there or in data/")

    def _names(self, root: Path, files: list[str]) -> Iterator[str]:
        """What the clips without id are called after, to find out which names come twice."""
        for row in (row for file in files for row in self._rows(root, file, only_names=True)):
            if row.said["file"]:
                yield without_suffix(row.said["file"])

    def _rows(self, root: Path, file: str, *, only_names: bool = False) -> Iterator[_Row]:
        path, characters, first = root / file, 0, 0
        try:
            with open_parquet(path) as table:
                columns = find_columns(str(path), table.schema_arrow, self.columns)
                kinds = ["file"] if only_names else list(_KINDS)
                if only_names and (columns.id or not columns.file):
                    return
                for group in range(table.num_row_groups):
                    for row in _rows_of_group(table, group, columns, kinds, (str(path), file), first):
                        characters += sum(map(len, row.said.values()))
                        if characters > _MOST_CHARACTERS:
                            raise BrokenParquet(f"more than {_MOST_CHARACTERS} characters of text")
                        yield row
                    first += table.metadata.row_group(group).num_rows
        except BrokenParquet as problem:
            raise LockstepError(str(path), found=f"cannot be read ({problem})", expected="a Parquet file") from None

    def _unread(self, path: Path) -> list[str]:
        try:
            with open_parquet(path) as table:
                return unread_columns(table.schema_arrow, find_columns(str(path), table.schema_arrow, self.columns))
        except BrokenParquet:
            return []  # `read` says so

    def left_out(self, data: Path) -> list[str]:
        """A line for each split, and each column of a speaker or a language, that is not read."""
        found: dict[str, int] = {}
        files, others = _divided(data)
        for file in others:
            found[_split(file)] = found.get(_split(file), 0) + 1
        columns = sorted({column for file in files for column in self._unread(folder_of(data) / file)})
        return [f"{data}: column {column} is not read, expected text" for column in columns] + [
            f"{data}: split {split!r} is not read ({count} file{'s'[: count != 1]}); --data takes a file of it as well"
            for split, count in sorted(found.items())
        ]


def _files(data: Path) -> list[str]:
    """Paths relative to a folder, sorted."""
    for folder in _FOLDERS:
        try:
            with os.scandir(data / folder) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIX) and entry.is_file())
        except OSError:
            names = []
        if names := [name for name in names if not name.startswith(".")]:
            return [os.path.join(folder, name) for name in names]
    return []


def _divided(data: Path) -> tuple[list[str], list[str]]:
    """(files that are read, those of other splits), relative to `folder_of(data)`."""
    if data.is_file():
        return [data.name], []
    files = _files(data)
    for file in files:
        _check_link(data, file)
    train = [file for file in files if _split(file).startswith("train")]
    chosen = train or [file for file in files if not _split(file)] or files
    splits = sorted({_split(file) for file in chosen})
    if not train and len(splits) > 1:
        raise LockstepError(str(data), found=f"splits {', '.join(splits)[:80]}", expected="train", fix="give one file")
    return chosen, [file for file in files if file not in set(chosen)]


def _check_link(data: Path, file: str) -> None:
    """Raise for a link out of the corpus, unless it leads to where the Hub's cache keeps the files of its snapshots."""
    cached = [parent.parent for parent in data.absolute().parents if parent.name == "snapshots"]
    if not any(os.path.dirname(os.path.realpath(data / file)) == os.path.realpath(one / "blobs") for one in cached):
        check_inside(data, file)


def _split(file: str) -> str:
    """The part of a data set that a file belongs to; empty where its name does not say."""
    match = _SPLIT.fullmatch(Path(file).stem)
    return (match[1] or match[2]) if match else ""


def _rows_of_group(
    table: Any, group: int, columns: Columns, kinds: list[str], source: tuple[str, str], first: int  # noqa: ANN401
) -> Iterator[_Row]:  # fmt: skip
    """source: the file for messages, and relative to the corpus; first: number of the first row."""
    kinds = [kind for kind in kinds if getattr(columns, kind)]
    leaves = list(dict.fromkeys(getattr(columns, kind) for kind in kinds))
    places = [(kind, leaves.index(getattr(columns, kind))) for kind in kinds]
    embedded = holding_audio(table, group, columns.audio) if columns.audio else []
    for number, values in enumerate(row_values(table, group, leaves), start=first):
        said = {kind: _text(values[place]) for kind, place in places}
        yield _Row(f"{source[0]} row {number}", source[1], number, bool(embedded) and embedded[number - first], said)


def _text(value: Any) -> str:  # noqa: ANN401 - a string, a whole number or None
    return "" if value is None else " ".join(filter(None, (line.strip() for line in str(value).split("\n"))))


def _add(clips: ClipList, row: _Row, root: Path, ids: Mapping[str, str], column: str) -> None:
    said = row.said
    folders, source = (os.path.dirname(row.source), ""), f"{row.source}/{member_of(row.number, column)}"
    if not row.embedded and said.get("path"):
        source = source_of(root, said["path"], folders, row.where)
    clips.add(
        _clip_id(row, ids), said.get("normalised") or said.get("text", ""),
        source, where=row.where, speaker=said.get("speaker", ""), normalised=bool(said.get("normalised")),
        language=said.get("language", ""),
    )  # fmt: skip


def _clip_id(row: _Row, ids: Mapping[str, str]) -> str:
    """As the file has it, or else after the sound file; the rows of a file that names neither are counted."""
    if "id" in row.said:
        return row.said["id"]
    file = row.said.get("file")
    return ids[without_suffix(file)] if file else f"{Path(row.source).stem}-{row.number}"
