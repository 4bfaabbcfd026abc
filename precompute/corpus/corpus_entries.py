"""The corpora that a build reads: the arguments of `--data`, or the entries of a YAML file."""

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from xtts.precompute.corpus.clip_fields import check_language
from xtts.shared.cache.cache_spec import CORPUS_NAME, MOST_WEIGHT, Weight
from xtts.shared.cache.object_store import is_url, local_corpus
from xtts.shared.config_files import parse_yaml
from xtts.shared.errors import LockstepError, read_text

_YAML = (".yaml", ".yml")
_EXAMPLE = "- {data: LJSpeech-1.1, name: lj, weight: 0.5}"
_NAME_EXPECTED = "1 to 64 letters from a to z, digits, dots, hyphens or underscores"


class _Options(BaseModel):
    """Options of a corpus that a user may set."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    name: Annotated[str, Field(pattern=f"^{CORPUS_NAME}$")] | None = None
    """Prefix of its ids and speakers, and its name in the cache; None if not given."""
    layout: str | None = None
    columns: str | None = None
    speakers: str | None = None
    language: str = ""
    """ISO 639 code of the clips that name none."""
    weight: Weight = 1.0
    """Draws of each clip per epoch."""


class _YamlEntry(_Options):
    """An entry of the YAML file."""

    data: Annotated[str, Field(min_length=1)]


_KEYS = ("data", *_Options.model_fields)


class CorpusEntry(_Options):
    """One corpus as requested."""

    location: str
    """The option or YAML entry that requests it, for messages."""
    data: Path
    """Folder, or the file that lists the clips; for a URL the local copy."""

    @property
    def own_name(self) -> str:
        """The name of its folder or file."""
        path = self.data.absolute()
        return path.stem if os.path.isfile(path) else path.name

    def __str__(self) -> str:
        return f"{self.name}={self.data}" if self.name else str(self.data)


Data = str | PathLike[str] | CorpusEntry | Sequence[str | PathLike[str] | CorpusEntry]
"""The value of `--data`: PATH, NAME=PATH, a YAML file, or several of them; or the entries parsed from these."""


def parse_data(data: Data, **options: str | None) -> list[CorpusEntry]:
    """Return the corpora of `--data` in the order given.

    A value with `=` that exists as a file or folder is a path. options: `layout`, `columns` and `speakers` of
    `read_corpus`; for every corpus but those of a YAML file, which has its own. Raises a `LockstepError` if there is no
    corpus or an entry is invalid.
    """
    values = [data] if isinstance(data, str | PathLike | CorpusEntry) else list(data)
    if not values:
        raise LockstepError("--data", found="no corpus", expected="a folder, or a file that lists clips")
    entries = list[CorpusEntry]()
    for value in values:
        if isinstance(value, CorpusEntry):
            entries.append(value)
            continue
        text, path = os.fspath(value), Path(value)
        name, equals, target = text.partition("=")
        named = {"data": text} if is_url(name) else {"data": target, "name": name}  # a URL's options have equals signs
        if path.suffix.lower() in _YAML and os.path.exists(path):
            if given := [f"--{name}" for name, option in options.items() if option is not None]:
                problem = f"{' and '.join(given)} with a list of corpora"
                raise LockstepError(f"--data {value}", found=problem, fix="set it in the file")
            entries += _read_list(path)
        elif isinstance(value, str) and (equals or is_url(name)) and not os.path.exists(path):
            entries.append(_entry({**named, **options}, f"--data {text.partition('?')[0]}", Path()))
        else:
            entries.append(CorpusEntry.model_validate({"location": str(path), "data": path, **options}))
    return entries


def _read_list(path: Path) -> list[CorpusEntry]:
    entries = parse_yaml(read_text(path), str(path))
    if not isinstance(entries, list) or not entries:
        problem = "no entries" if not entries else "not a list"
        raise LockstepError(str(path), found=problem, expected=f"a list of corpora, as in {_EXAMPLE}")
    return [_entry(entry, f"{path} entry {count}", path.parent) for count, entry in enumerate(entries, 1)]


def _entry(settings: object, location: str, folder: Path) -> CorpusEntry:
    """Return a validated entry, whose path is relative to `folder`."""
    if not isinstance(settings, dict):
        raise LockstepError(location, found=f"{settings!r:.60}", expected=f"keys and values, as in {_EXAMPLE}")
    try:
        checked = _YamlEntry.model_validate(settings)
    except ValidationError as error:
        raise _explain(error, location) from None
    if Path(checked.data).suffix.lower() in _YAML:
        raise LockstepError(location, found=f"data {checked.data[:80]!r}", expected="a corpus, not a list of corpora")
    options = checked.model_dump(exclude={"data"}) | {"language": check_language(checked.language, location)}
    return CorpusEntry(location=location, data=folder / local_corpus(checked.data), **options)


def _explain(error: ValidationError, location: str) -> LockstepError:
    """Return the first error of a validation as one line."""
    first = error.errors()[0]
    key, kind = str(first["loc"][0]) if first["loc"] else "", first["type"]
    if kind == "extra_forbidden":
        return LockstepError(location, found=f"unknown key {key[:40]}", expected=" or ".join(_KEYS))
    if kind == "missing":
        return LockstepError(location, found=f"no {key}", expected=f"the path of a corpus, as in {_EXAMPLE}")
    expected = {"name": _NAME_EXPECTED, "weight": f"a number above 0, at most {MOST_WEIGHT:g}"}.get(key, "text")
    return LockstepError(location, found=f"{key} {first['input']!r:.60}", expected=expected)
