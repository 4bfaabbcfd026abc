"""Which corpora a build reads: what `--data` names, or a YAML file that lists them."""

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from xtts.precompute.corpus.clip_fields import check_language, check_name
from xtts.shared.cache.cache_spec import CORPUS_NAME, MOST_WEIGHT, Weight
from xtts.shared.config_files import parse_yaml
from xtts.shared.errors import LockstepError
from xtts.shared.storage.urls import StoreUrl, path_or_url

_REMOTE = re.compile(r"(?:(?P<name>[^=:/?]+)=)?(?P<url>[a-zA-Z0-9]+://.*)")
_YAML = (".yaml", ".yml")
_EXAMPLE = "- {data: LJSpeech-1.1, name: lj, weight: 0.5}"
_NAME_EXPECTED = "1 to 64 letters from a to z, digits, dots, hyphens or underscores"


class _Settings(BaseModel):
    """An entry of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    data: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(pattern=f"^{CORPUS_NAME}$")] | None = None
    layout: str | None = None
    columns: str | None = None
    language: str = ""
    speaker_prefix: str | None = None
    weight: Weight = 1.0


@dataclass(frozen=True, kw_only=True)
class CorpusEntry:
    """One corpus, as it was asked for."""

    where: str
    """Who asked for it."""
    data: Path
    """Its folder, or the file that lists its clips; of one in an object store the local folder that stands for it."""
    url: StoreUrl | None = None
    """Where it is in an object store."""
    name: str = ""
    """What it is called in ids, speakers and shards; empty where it was given none."""
    layout: str | None = None
    columns: str | None = None
    language: str = ""
    """ISO 639 code of its clips that name none."""
    speaker_prefix: str | None = None
    """Before the names of its speakers; None where none was asked for."""
    weight: float = 1.0
    """How often training draws its clips; 1 is once an epoch."""

    @property
    def own_name(self) -> str:
        """The name of its folder or file."""
        path = self.data.absolute()
        return path.stem if os.path.isfile(path) else path.name

    def __str__(self) -> str:
        place = self.url or self.data
        return f"{self.name}={place}" if self.name else str(place)


Data = str | PathLike[str] | CorpusEntry | Sequence[str | PathLike[str] | CorpusEntry]
"""What `--data` is given: PATH, NAME=PATH, a YAML file, or several of them; or entries that were made of these."""


def parse_data(data: Data, *, layout: str | None = None, columns: str | None = None) -> list[CorpusEntry]:
    """The corpora of `--data`, in the order in which they are given.

    What exists under its whole name is a path. layout, columns: of every corpus, as in `read_corpus`; a YAML file says
    its own. A `LockstepError` where no corpus is named, or an entry cannot be used.
    """
    values = [data] if isinstance(data, str | PathLike | CorpusEntry) else list(data)
    if not values:
        raise LockstepError("--data", found="no corpus", expected="a folder, or a file that lists clips")
    entries = list[CorpusEntry]()
    for value in values:
        if isinstance(value, CorpusEntry):
            entries.append(value)
            continue
        remote = _REMOTE.fullmatch(value) if isinstance(value, str) else None
        if remote:
            settings = {"data": remote["url"], "name": remote["name"], "layout": layout, "columns": columns}
            entries.append(_entry(settings, f"--data {remote['url'].partition('?')[0]}", Path()))
            continue
        path, where = Path(value), f"--data {value}"
        if path.suffix.lower() in _YAML and os.path.exists(path):
            if layout is not None or columns is not None:
                raise LockstepError(
                    where, found="--layout or --columns with a list of corpora", fix="say it in the file"
                )
            entries += _read_list(path)
            continue
        name, equals, rest = str(value).partition("=") if isinstance(value, str) else (value, "", "")
        if equals and not os.path.exists(path):
            entries.append(_entry({"data": rest, "name": name, "layout": layout, "columns": columns}, where, Path()))
        else:
            entries.append(CorpusEntry(where=str(path), data=path, layout=layout, columns=columns))
    return entries


def _read_list(path: Path) -> list[CorpusEntry]:
    try:
        entries = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise LockstepError(str(path), found=f"cannot be read ({reason})") from None
    if not isinstance(entries, list) or not entries:
        found = "no entries" if not entries else "no list"
        raise LockstepError(str(path), found=found, expected=f"a list of corpora, as in {_EXAMPLE}")
    return [_entry(entry, f"{path} entry {number}", path.parent) for number, entry in enumerate(entries, 1)]


def _entry(settings: object, where: str, folder: Path) -> CorpusEntry:
    """A checked entry; its path is relative to `folder`."""
    if not isinstance(settings, dict):
        raise LockstepError(where, found=f"{settings!r:.60}", expected=f"keys and values, as in {_EXAMPLE}")
    try:
        checked = _Settings.model_validate(settings)
    except ValidationError as error:
        raise _explain(error, where) from None
    if Path(checked.data).suffix.lower() in _YAML:
        raise LockstepError(where, found=f"data {checked.data[:80]!r}", expected="a corpus, and no list of corpora")
    if "\0" in checked.data:
        raise LockstepError(where, found=f"data {checked.data[:80]!r}", expected="a path")
    if checked.speaker_prefix:
        check_name(checked.speaker_prefix, what="speaker_prefix", where=where)
    fields = checked.model_dump(exclude={"data", "name", "language"})
    language = check_language(checked.language, where)
    place = path_or_url(checked.data)
    at = {"data": folder / place} if isinstance(place, Path) else {"data": place.local_folder("corpora"), "url": place}
    return CorpusEntry(where=where, **at, name=checked.name or "", language=language, **fields)


def _explain(error: ValidationError, where: str) -> LockstepError:
    first = error.errors()[0]
    key, kind = str(first["loc"][0]) if first["loc"] else "", first["type"]
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(key, _Settings.model_fields, n=1)
        fix = f"did you mean {near[0]}?" if near else ""
        return LockstepError(
            where, found=f"unknown key {key[:40]}", expected=" or ".join(_Settings.model_fields), fix=fix
        )
    if kind == "missing":
        return LockstepError(where, found=f"no {key}", expected=f"the path of a corpus, as in {_EXAMPLE}")
    expected = {"name": _NAME_EXPECTED, "weight": f"a number above 0, at most {MOST_WEIGHT:g}"}.get(key, "text")
    return LockstepError(where, found=f"{key} {first['input']!r:.60}", expected=expected)
