"""Data sets of Hugging Face: Parquet files with audio in them, or with the paths of audio files.

Columns are recognized by their usual names unless the user names them.
"""

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from xtts.precompute.archives.parquet_files import (
    SUFFIX,
    BrokenParquet,
    audio_leaf,
    open_parquet,
    rate_leaf,
    row_values,
    rows_with_audio,
)
from xtts.precompute.corpus.corpus_files import clip_ids, source_of, visible_names, without_suffix
from xtts.precompute.corpus.layouts.layout import Layout, checked_clip, folder_of
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, USUAL_NAMES, column_name
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_FOLDERS = ("", "data")
"""Subfolders that may hold the Parquet files."""
_SPLIT = re.compile(
    r"(.+?)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?|(train|training|test|dev|val|valid|validation|eval|evaluation)(?:[-._]?\d+)?"
)
"""Names of files that hold a split of a data set."""
_KINDS = ("path", "text", "normalised", "speaker", "language", "id", "file")
"""Kinds of the values read from a row."""
_USUAL = {**USUAL_NAMES, "file": ("audio", "file", "path", "file_name", "audio_filepath")}
_FILE_NAMES = _USUAL["file"][1:]
"""Columns whose file names may become ids of clips."""
_TEXTS = ("text", "normalised")

Columns = dict[str, str]
"""Names of columns by `audio` (the bytes of audio files) and `_KINDS`; empty if there is none. `path` holds the paths
of audio files without embedded bytes, `file` the names that become ids of clips without one."""


def parquet(named: Mapping[str, str]) -> Layout:
    """Return the layout of a file, a folder of files, or a folder with files in `data/`.

    Of several splits only the training split is read. named: columns that the user names, see `find_columns`.
    """
    return Layout(
        "parquet", f"files *{SUFFIX} with rows, in it or in its data/", _matches, partial(_read, named), _skipped
    )


def _matches(data: Path) -> bool:
    """Whether it is a Parquet file, or a folder with some and without `metadata.csv`."""
    if data.is_file():
        return data.suffix == SUFFIX
    return bool(_files(data)) and not (data / METADATA_FILE).exists()


def _read(named: Mapping[str, str], data: Path) -> Iterator[Clip]:
    """Yield the clips in the order of their files and rows."""
    root, (files, _) = folder_of(data), _read_and_skipped(data)
    names = (values["file"] for file in files for _, _, values in _rows(root / file, named, only_names=True))
    ids, column = clip_ids(without_suffix(name) for name in names if name), named.get("file", "")
    for file in files:
        for position, embedded, values in _rows(root / file, named):
            location = f"{root / file} row {position}"
            source = f"{file}/{position}" + (f":{column}" if column else "")
            if not embedded and values.get("path"):
                source = source_of(root, values["path"], (os.path.dirname(file), ""), location)
            if (clip_id := values.get("id")) is None:
                name = values.get("file")
                clip_id = ids[without_suffix(name)] if name else f"{Path(file).stem}-{position}"
            yield checked_clip(
                clip_id, values.get("normalised") or values.get("text", ""), source, location=location,
                speaker=values.get("speaker", ""), normalised=bool(values.get("normalised")),
                language=values.get("language", ""),
            )


def _rows(
    path: Path, named: Mapping[str, str], *, only_names: bool = False
) -> Iterator[tuple[int, bool, dict[str, str]]]:
    """Yield (position, whether it holds its audio, text by kind of `_KINDS`) of each row of a file."""
    position = itertools.count()
    try:
        with open_parquet(path) as table:
            columns = find_columns(str(path), table.schema_arrow, named)
            if only_names and (columns["id"] or not columns["file"]):
                return
            kinds = ["file"] if only_names else [kind for kind in _KINDS if columns[kind]]
            leaves = list(dict.fromkeys(columns[kind] for kind in kinds))
            for group in range(table.num_row_groups):
                audio = columns["audio"]
                embedded = rows_with_audio(table, group, audio) if audio else itertools.repeat(False)
                for values, has_audio in zip(row_values(table, group, leaves), embedded, strict=False):
                    by_leaf = dict(zip(leaves, map(_text, values), strict=True))
                    yield next(position), has_audio, {kind: by_leaf[columns[kind]] for kind in kinds}
    except BrokenParquet as error:
        raise LockstepError(str(path), found=f"cannot be read ({error})", expected="a Parquet file") from None


def _skipped(data: Path) -> list[str]:
    """Return a line for each split that is not read."""
    counts = Counter(map(_split, _read_and_skipped(data)[1]))
    return [
        f"{data}: split {split!r} is not read ({count} file{'s'[: count != 1]}); --data also takes a single file"
        for split, count in sorted(counts.items())
    ]


def _files(data: Path) -> list[str]:
    """Return the sorted paths of the Parquet files in `data`, relative to it."""
    for folder in _FOLDERS:
        files = [os.path.join(folder, name) for name in visible_names(data / folder) if name.endswith(SUFFIX)]
        if files := [file for file in files if (data / file).is_file()]:
            return files
    return []


def _read_and_skipped(data: Path) -> tuple[list[str], list[str]]:
    """Return (files to read, files of other splits), relative to `folder_of(data)`."""
    if data.is_file():
        return [data.name], []
    files = _files(data)
    train = [file for file in files if _split(file).startswith("train")]
    chosen = train or [file for file in files if not _split(file)] or files
    splits = sorted({_split(file) for file in chosen})
    if not train and len(splits) > 1:
        raise LockstepError(str(data), found=f"splits {', '.join(splits)[:80]}", expected="train", fix="give one file")
    return chosen, [file for file in files if file not in set(chosen)]


def _split(file: str) -> str:
    """Return the split that a file's name gives; empty if it gives none."""
    match = _SPLIT.fullmatch(Path(file).stem)
    return (match[1] or match[2]) if match else ""


def _text(value: object) -> str:
    return "" if value is None else " ".join(filter(None, (line.strip() for line in str(value).split("\n"))))


def find_columns(location: str, schema: pa.Schema, named: Mapping[str, str]) -> Columns:
    """Return the columns of a file with this schema.

    named: position from 0 or name of a column by kind, from `--columns`.

    Raises a `LockstepError` if a named or required column is missing or of another type, or two could be the text.
    """
    own = {kind: _named(location, schema, name) for kind, name in named.items()}
    for kind, name in own.items():
        if kind != "file" and not _is_of_kind(type_ := schema.field(name).type, kind):
            raise LockstepError(location, found=f"column {name[:40]!r} of {type_}"[:160], expected="text")
    audio, path = _audio(location, schema, own.get("file", ""))
    text, normalised = _texts(location, schema, own)
    others = {kind: own.get(kind) or _first(schema, _USUAL[kind], kind) for kind in ("speaker", "language", "id")}
    file = _first(schema, _FILE_NAMES, "text") or path
    return {"audio": audio, "path": path, "text": text, "normalised": normalised, "file": file, **others}


def _named(location: str, schema: pa.Schema, name: str) -> str:
    """Return the name of the column that `name` names or gives the position of."""
    names: list[str] = schema.names
    if name in names and names.count(name) == 1:
        return name
    if name.isdecimal() and int(name) < len(names):
        return names[int(name)]
    raise LockstepError(location, found=f"no column {name[:40]!r}", expected=f"one of {names!r:.200}")


def _audio(location: str, schema: pa.Schema, named: str) -> tuple[str, str]:
    """Return (column of bytes, column of paths) of the audio; either may be empty."""
    try:
        leaf = audio_leaf(schema, named)
    except BrokenParquet as error:
        path = named or _first(schema, _USUAL["file"], "text")
        if path and _is_of_kind(schema.field(path).type, "text"):
            return "", path
        fix = "name it, as in --columns file=audio"
        expected = (
            "a column of bytes, struct{bytes, path} or numbers with sampling_rate, or one called audio with paths"
        )
        raise LockstepError(location, found=str(error), expected=expected, fix=fix) from None
    try:
        rate_leaf(schema, leaf)
    except BrokenParquet as error:
        raise LockstepError(location, found=str(error), fix="add one, in samples per second") from None
    path, kinds = f"{leaf.removesuffix('.bytes').removesuffix('.array')}.path", schema.empty_table().flatten().schema
    return leaf, path if path in kinds.names and _is_of_kind(kinds.field(path).type, "text") else ""


def _texts(location: str, schema: pa.Schema, own: Mapping[str, str]) -> tuple[str, str]:
    """Return the columns (raw text, normalised text), one of which may be empty."""
    if any(kind in own for kind in _TEXTS):
        return own.get("text", ""), own.get("normalised", "")
    candidates = {kind: _usual(schema, _USUAL[kind], "text") for kind in _TEXTS}
    for kind, names in candidates.items():
        if len(names) > 1:
            problem = f"{len(names)} columns of text: {', '.join(names)}"
            fix = " or ".join(f"--columns {kind}={name}" for name in names)
            raise LockstepError(location, found=problem, fix=f"choose one: {fix}")
    if not any(candidates.values()):
        expected = f"a column of text, such as {', '.join(_USUAL['text'][:4])}"
        problem = f"columns {', '.join(schema.names)[:120]}"
        raise LockstepError(location, found=problem, expected=expected, fix="name it, as in --columns text=NAME")
    return "".join(candidates["text"]), "".join(candidates["normalised"])


def _usual(schema: pa.Schema, usual: tuple[str, ...], kind: str) -> list[str]:
    """Return the columns of the right type with one of the `usual` names, in the order of these."""
    names = [name for usual_name in usual for name in schema.names if column_name(name) == usual_name]
    return [name for name in names if schema.names.count(name) == 1 and _is_of_kind(schema.field(name).type, kind)]


def _first(schema: pa.Schema, usual: tuple[str, ...], kind: str) -> str:
    return next(iter(_usual(schema, usual, kind)), "")


def _is_of_kind(type_: pa.DataType, kind: str) -> bool:
    """Whether a type is text, or for speakers and ids an integer."""
    value = type_.value_type if kinds.is_dictionary(type_) else type_
    checks: list[Callable[[Any], bool]] = [kinds.is_string, kinds.is_large_string]
    checks += [kinds.is_integer] if kind in ("speaker", "id") else []
    return any(check(value) for check in checks)
