"""Which columns of a Parquet file hold audio, text, speaker, language and id: by their usual names, or as named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from xtts.precompute.archives.parquet_files import BrokenParquet, audio_leaf, split_leaf
from xtts.precompute.corpus.usual_names import USUAL_NAMES
from xtts.shared.errors import LockstepError

_USUAL = {**USUAL_NAMES, "file": ("audio", "file", "path", "file_name", "audio_filepath")}
_FILE_NAMES = _USUAL["file"][1:]
"""Columns after which a clip may be called."""
_TEXTS = ("text", "normalised")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of columns, empty where there is none; `audio.path` is a part of one."""

    audio: str
    """The bytes of sound files."""
    path: str
    """Where the sound files lie that no bytes are given of."""
    text: str
    normalised: str
    speaker: str
    language: str
    id: str
    file: str
    """What the clips without id are called after."""
    named_audio: str
    """The column of `audio`, where the user named it."""


def find_columns(where: str, schema: Any, named: Mapping[str, str]) -> Columns:  # noqa: ANN401 - pyarrow has no types
    """The columns of a file with this schema.

    Args:
        where: The file, for messages.
        schema: Arrow's.
        named: Of some kinds (those of `--columns`) the number of the column from 0, or its name.

    Raises:
        LockstepError: A column that is needed or named is missing or of another type, or two could be the text.
    """
    own = {kind: _named(where, schema, name) for kind, name in named.items()}
    for kind, name in own.items():
        _check_type(where, schema, kind, name)
    audio, path = _audio(where, schema, own.get("file", ""))
    text, normalised = _texts(where, schema, own)
    found = {kind: own.get(kind) or _first(schema, _USUAL[kind], kind) for kind in ("speaker", "language", "id")}
    file = _first(schema, _FILE_NAMES, "text") or path
    return Columns(
        audio=audio, path=path, text=text, normalised=normalised, file=file,
        named_audio=own.get("file", "") if audio else "", **found,
    )  # fmt: skip


def unread_columns(schema: Any, columns: Columns) -> list[str]:  # noqa: ANN401 - pyarrow has no types
    """Names and types of columns that are called like a speaker or a language, but hold something else."""
    import pyarrow.types as kinds

    wanted = {name for kind in ("speaker", "language") if not getattr(columns, kind) for name in _USUAL[kind]}
    found = [field for field in schema if field.name.lower() in wanted and not kinds.is_null(field.type)]
    return [f"{field.name!r} of {field.type}"[:80] for field in found]


def _named(where: str, schema: Any, name: str) -> str:  # noqa: ANN401 - pyarrow ships no types
    names: list[str] = schema.names
    if name in names and names.count(name) == 1:
        return name
    if name.isdecimal() and int(name) < len(names):
        return names[int(name)]
    raise LockstepError(where, found=f"no column {name[:40]!r}", expected=f"one of {names!r:.200}")


def _audio(where: str, schema: Any, named: str) -> tuple[str, str]:  # noqa: ANN401 - pyarrow ships no types
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
    name, part = split_leaf(leaf)
    kind = schema.field(name if part else leaf).type
    at = kind.get_field_index("path") if part else -1
    return leaf, f"{name}.path" if at >= 0 and _is_of_kind(kind.field(at).type, "text") else ""


def _texts(where: str, schema: Any, own: Mapping[str, str]) -> tuple[str, str]:  # noqa: ANN401 - pyarrow has no types
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


def _usual(schema: Any, usual: tuple[str, ...], kind: str) -> list[str]:  # noqa: ANN401 - pyarrow ships no types
    names = [name for one in usual for name in schema.names if name.lower() == one]
    return [name for name in names if schema.names.count(name) == 1 and _is_of_kind(schema.field(name).type, kind)]


def _first(schema: Any, usual: tuple[str, ...], kind: str) -> str:  # noqa: ANN401 - pyarrow ships no types
    return next(iter(_usual(schema, usual, kind)), "")


def _check_type(where: str, schema: Any, kind: str, name: str) -> None:  # noqa: ANN401 - pyarrow ships no types
    if kind != "file" and not _is_of_kind(schema.field(name).type, kind):
        raise LockstepError(where, found=f"column {name[:40]!r} of {schema.field(name).type}"[:160], expected="text")


def _is_of_kind(type_: Any, kind: str) -> bool:  # noqa: ANN401 - pyarrow ships no types
    """Text, and for names of speakers and clips also whole numbers."""
    import pyarrow.types as kinds

    value = type_.value_type if kinds.is_dictionary(type_) else type_
    checks: list[Callable[[Any], bool]] = [kinds.is_string, kinds.is_large_string]
    checks += [kinds.is_integer] if kind in ("speaker", "id") else []
    return any(check(value) for check in checks)
