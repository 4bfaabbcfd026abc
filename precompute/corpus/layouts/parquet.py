"""Data sets of Hugging Face: Parquet files with audio in them, or with the paths of audio files.

Columns are found by their usual names, or as the user names them.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xtts.precompute.archives.parquet_files import (
    SUFFIX,
    BrokenParquet,
    audio_leaf,
    holding_audio,
    member_of,
    open_parquet,
    row_values,
)
from xtts.precompute.corpus.corpus_files import check_inside, clip_ids, source_of, without_suffix
from xtts.precompute.corpus.layouts.layout import checked_clip, folder_of
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, USUAL_NAMES
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_FOLDERS = ("", "data")
"""Where a folder's Parquet files lie."""
_SPLIT = re.compile(
    r"(.+?)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?|(train|training|test|dev|val|valid|validation|eval|evaluation)(?:[-._]?\d+)?"
)
"""How files are called that hold a part of a data set."""
_KINDS = ("path", "text", "normalised", "speaker", "language", "id", "file")
"""What is read of a row."""
_USUAL = {**USUAL_NAMES, "file": ("audio", "file", "path", "file_name", "audio_filepath")}
_FILE_NAMES = _USUAL["file"][1:]
"""Columns after which a clip may be called."""
_TEXTS = ("text", "normalised")


Columns = dict[str, str]
"""Names of columns by `audio` (the bytes of sound files) and `_KINDS`; empty where there is none. `path` is where the
sound files lie that no bytes are given of, `file` what clips without id are called after."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What a file says of a clip."""

    where: str
    source: str
    number: int
    embedded: bool
    said: Mapping[str, str]
    """By the names of `_KINDS`."""


@dataclass(frozen=True)
class Parquet:
    """A file, a folder of files, or a folder with them in `data/`; of several splits those called train are read."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Those that the user names, as in `find_columns`."""
    name: str = "parquet"
    expected: str = f"files *{SUFFIX} with rows, there or in data/"

    def matches(self, data: Path) -> bool:
        """A Parquet file, or a folder with some and without `metadata.csv`."""
        if data.is_file():
            return data.suffix == SUFFIX
        return bool(_files(data)) and not (data / METADATA_FILE).exists()

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their files and rows."""
        root, (files, _) = folder_of(data), _divided(data)
        ids, column = clip_ids(self._names(root, files)), self.columns.get("file", "")
        return (_clip(row, root, ids, column) for file in files for row in self._rows(root, file))

    def _names(self, root: Path, files: list[str]) -> Iterator[str]:
        """What the clips without id are called after, to find out which names come twice."""
        for row in (row for file in files for row in self._rows(root, file, only_names=True)):
            if row.said["file"]:
                yield without_suffix(row.said["file"])

    def _rows(self, root: Path, file: str, *, only_names: bool = False) -> Iterator[_Row]:
        path, first = root / file, 0
        try:
            with open_parquet(path) as table:
                columns = find_columns(str(path), table.schema_arrow, self.columns)
                kinds = ["file"] if only_names else list(_KINDS)
                if only_names and (columns["id"] or not columns["file"]):
                    return
                for group in range(table.num_row_groups):
                    yield from _rows_of_group(table, group, columns, kinds, (str(path), file), first)
                    first += table.metadata.row_group(group).num_rows
        except BrokenParquet as problem:
            raise LockstepError(str(path), found=f"cannot be read ({problem})", expected="a Parquet file") from None

    def left_out(self, data: Path) -> list[str]:
        """A line for each split that is not read."""
        found = Counter(map(_split, _divided(data)[1]))
        return [
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
    table: "pq.ParquetFile", group: int, columns: Columns, kinds: list[str], source: tuple[str, str], first: int
) -> Iterator[_Row]:  # fmt: skip
    """source: the file for messages, and relative to the corpus; first: number of the first row."""
    kinds = [kind for kind in kinds if columns[kind]]
    leaves = list(dict.fromkeys(columns[kind] for kind in kinds))
    places = [(kind, leaves.index(columns[kind])) for kind in kinds]
    embedded = holding_audio(table, group, columns["audio"]) if columns["audio"] else []
    for number, values in enumerate(row_values(table, group, leaves), start=first):
        said = {kind: _text(values[place]) for kind, place in places}
        yield _Row(f"{source[0]} row {number}", source[1], number, bool(embedded) and embedded[number - first], said)


def _text(value: object) -> str:
    return "" if value is None else " ".join(filter(None, (line.strip() for line in str(value).split("\n"))))


def _clip(row: _Row, root: Path, ids: Mapping[str, str], column: str) -> Clip:
    said = row.said
    folders, source = (os.path.dirname(row.source), ""), f"{row.source}/{member_of(row.number, column)}"
    if not row.embedded and said.get("path"):
        source = source_of(root, said["path"], folders, row.where)
    return checked_clip(
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


def find_columns(where: str, schema: "pa.Schema", named: Mapping[str, str]) -> Columns:
    """The columns of a file with this schema.

    named: of some kinds (those of `--columns`) the number of the column from 0, or its name.

    A `LockstepError` where a column that is needed or named is missing or of another type, or two could be the text.
    """
    own = {kind: _named(where, schema, name) for kind, name in named.items()}
    for kind, name in own.items():
        if kind != "file" and not _is_of_kind(type_ := schema.field(name).type, kind):
            raise LockstepError(where, found=f"column {name[:40]!r} of {type_}"[:160], expected="text")
    audio, path = _audio(where, schema, own.get("file", ""))
    text, normalised = _texts(where, schema, own)
    found = {kind: own.get(kind) or _first(schema, _USUAL[kind], kind) for kind in ("speaker", "language", "id")}
    file = _first(schema, _FILE_NAMES, "text") or path
    return {"audio": audio, "path": path, "text": text, "normalised": normalised, "file": file, **found}


def _named(where: str, schema: "pa.Schema", name: str) -> str:
    names: list[str] = schema.names
    if name in names and names.count(name) == 1:
        return name
    if name.isdecimal() and int(name) < len(names):
        return names[int(name)]
    raise LockstepError(where, found=f"no column {name[:40]!r}", expected=f"one of {names!r:.200}")


def _audio(where: str, schema: "pa.Schema", named: str) -> tuple[str, str]:
    """(column of bytes, column of paths) of the audio."""
    try:
        leaf = audio_leaf(schema, named)
    except BrokenParquet as problem:
        path = named or _first(schema, _USUAL["file"], "text")
        if path and _is_of_kind(schema.field(path).type, "text"):
            return "", path
        fix = "name it, as in --columns file=audio"
        expected = "one of struct{bytes, path}, of bytes, or audio of paths"
        raise LockstepError(where, found=str(problem), expected=expected, fix=fix) from None
    path, kinds = f"{leaf.removesuffix('.bytes')}.path", schema.empty_table().flatten().schema
    return leaf, path if path in kinds.names and _is_of_kind(kinds.field(path).type, "text") else ""


def _texts(where: str, schema: "pa.Schema", own: Mapping[str, str]) -> tuple[str, str]:
    """(raw text, text in words), one of which may be empty."""
    if any(kind in own for kind in _TEXTS):
        return own.get("text", ""), own.get("normalised", "")
    both = {kind: _usual(schema, _USUAL[kind], "text") for kind in _TEXTS}
    for kind, names in both.items():
        if len(names) > 1:
            fix = " or ".join(f"--columns {kind}={name}" for name in names)
            raise LockstepError(
                where, found=f"{len(names)} columns of text: {', '.join(names)}", fix=f"say which: {fix}"
            )
    if not any(both.values()):
        expected = f"a column of text, such as {', '.join(_USUAL['text'][:4])}"
        found = f"columns {', '.join(schema.names)[:120]}"
        raise LockstepError(where, found=found, expected=expected, fix="name it, as in --columns text=NAME")
    return "".join(both["text"]), "".join(both["normalised"])


def _usual(schema: "pa.Schema", usual: tuple[str, ...], kind: str) -> list[str]:
    names = [name for one in usual for name in schema.names if name.lower() == one]
    return [name for name in names if schema.names.count(name) == 1 and _is_of_kind(schema.field(name).type, kind)]


def _first(schema: "pa.Schema", usual: tuple[str, ...], kind: str) -> str:
    return next(iter(_usual(schema, usual, kind)), "")


def _is_of_kind(type_: "pa.DataType", kind: str) -> bool:
    """Text, and for names of speakers and clips also whole numbers."""
    import pyarrow.types as kinds

    value = type_.value_type if kinds.is_dictionary(type_) else type_
    checks: list[Callable[[Any], bool]] = [kinds.is_string, kinds.is_large_string]
    checks += [kinds.is_integer] if kind in ("speaker", "id") else []
    return any(check(value) for check in checks)
