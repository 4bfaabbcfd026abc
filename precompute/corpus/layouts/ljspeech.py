"""The LJSpeech layout: `metadata.csv` of `id|text|normalised text|speaker|language`, audio in `wavs/` or the like."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import (
    SUFFIXES,
    audio_by_name,
    check_inside,
    clip_ids,
    files_below,
    is_audio,
    nfc,
    visible_names,
    without_suffix,
)
from xtts.precompute.corpus.layouts.layout import checked_clip, folder_of
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, reading_of, sampled_lines, table_of, usual_width
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_FOLDERS = ("wavs", "", "wav", "clips", "audio")
"""Where audio is looked for, from the list's folder on: the first with a file of the list is taken."""


class LJSpeech:
    """Three of the five columns are optional; the third falls back to the second."""

    name, expected = "ljspeech", "lines of id|text|normalised text"

    def matches(self, data: Path) -> bool:
        """Whether `reading_of` its metadata says so."""
        path = table_of(data)
        return path is not None and reading_of(path) == self.name

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of their lines; their audio lies in the first of `_FOLDERS` that has some."""
        root, path = folder_of(data), data if data.is_file() else data / METADATA_FILE
        audio, width = _Audio(root, path), usual_width(sampled_lines(path))
        for where, line in filled_lines(path):
            columns = [column.strip() for column in line.split("|")]
            if len(line.rstrip("| \t").split("|")) > width:
                fix = "take the | out of the text"
                raise LockstepError(
                    where, found=f"{len(columns)} columns", expected=f"{width} as in most lines", fix=fix
                )
            if not 2 <= len(columns) <= 5:
                count = "one column" if len(columns) == 1 else f"{len(columns)} columns"
                expected = "id|text, optionally followed by |normalised text|speaker|language"
                raise LockstepError(where, found=count, expected=expected)
            named, raw, normalised, speaker, language = (*columns, "", "", "")[:5]
            clip_id, source = audio.find(named, where)
            yield checked_clip(
                clip_id, normalised or raw, source, where=where, speaker=speaker, normalised=bool(normalised),
                language=language,
            )  # fmt: skip


class _Audio:
    """The audio files of a folder and its folders, by what the first column of a list calls them."""

    def __init__(self, root: Path, path: Path) -> None:
        self._root, self._path = root, path
        for self._folder in (*_FOLDERS, _FOLDERS[0]):
            check_inside(root, self._folder)
            names = visible_names(root / self._folder)
            self._files = audio_by_name(names)
            folders = {nfc(name) for name in names if not is_audio(name) and (root / self._folder / name).is_dir()}
            if self._folder == "":  # anything may lie beside a list: those count that it names
                folders.intersection_update(name.partition("/")[0] for name in self._names() if "/" in name)
            self._has_folders = bool(folders)
            if self._has_folders or any(without_suffix(name) in self._files for name in self._names()):
                break

    def _names(self) -> Iterator[str]:
        return (nfc(line.partition("|")[0].strip()) for _, line in filled_lines(self._path))

    @cached_property
    def _nested(self) -> dict[str, str]:
        return audio_by_name(files_below(self._root, self._folder)) if self._has_folders else {}

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """Name without folders to the paths of all files that are called so."""
        found: dict[str, list[str]] = {}
        for name, path in self._nested.items():
            found.setdefault(PurePosixPath(name).name, []).append(path)
        return found

    @cached_property
    def _ids(self) -> dict[str, str]:
        return clip_ids(without_suffix(name) for name in self._names())

    def find(self, named: str, where: str) -> tuple[str, str]:
        """(id, source) of a clip; an id whose file is missing is said to lie in the folder of the others.

        A `LockstepError` where several folders hold a file of this name.
        """
        clip_id, file = self._file(nfc(named), where)
        path = os.path.join(self._folder, file or f"{without_suffix(named)}{SUFFIXES[0]}")
        if file and os.path.islink(self._root / path):  # those in folders of it are checked
            check_inside(self._root, path)
        return clip_id, path

    def _file(self, named: str, where: str) -> tuple[str, str | None]:
        """(id, path in the folder, None where there is no such file)."""
        file = self._files.get(named)
        if file is None and is_audio(named) and without_suffix(named) in self._files:
            return without_suffix(named), self._files[without_suffix(named)]
        if file is None and self._nested:
            path = self._nested.get(without_suffix(named))
            if path:
                return self._ids[without_suffix(named)], path
            several = self._by_name.get(named, [])
            if len(several) > 1:
                found = f"{len(several)} files called {named!r}, the first are {several[0]} and {several[1]}"
                raise LockstepError(where, found=found, fix="write the folder before the id, as in p225/p225_001")
            file = several[0] if several else None
        return named, file
