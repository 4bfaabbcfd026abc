"""The LJSpeech layout: `metadata.csv` of `id|text|normalised text|speaker|language`, audio in `wavs/` or the like."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.corpus_files import (
    SUFFIXES,
    audio_by_name,
    clip_ids,
    files_below,
    is_audio,
    nfc,
    posix,
    visible_names,
    without_suffix,
)
from xtts.precompute.corpus.layouts.layout import Layout, checked_clip
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, layout_of, sampled_lines, usual_width
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_FOLDERS = ("wavs", "", "wav", "clips", "audio")
"""Folders beside the list that are searched for audio; the first that holds a listed file is used."""


def _read(data: Path) -> Iterator[Clip]:
    """Yield the clips in the order of their lines; their audio is in the first of `_FOLDERS` that has any.

    Of up to five columns the last three are optional; without a normalised text the raw one is taken.
    """
    path = data if data.is_file() else data / METADATA_FILE
    audio, width = _Audio(path.parent, path), usual_width(sampled_lines(path))
    for location, line in filled_lines(path):
        columns = [column.strip() for column in line.split("|")]
        if len(line.rstrip("| \t").split("|")) > width:
            problem, fix = f"{len(columns)} columns", "remove the | from the text"
            raise LockstepError(location, found=problem, expected=f"{width} as in most lines", fix=fix)
        if not 2 <= len(columns) <= 5:
            problem = "one column" if len(columns) == 1 else f"{len(columns)} columns"
            expected = "id|text, optionally followed by |normalised text|speaker|language"
            raise LockstepError(location, found=problem, expected=expected)
        named, raw, normalised, speaker, language = (*columns, "", "", "")[:5]
        clip_id, source = audio.find(posix(named), location)
        yield checked_clip(
            clip_id, normalised or raw, source, location=location, speaker=speaker, normalised=bool(normalised),
            language=language,
        )


LJSPEECH = Layout(
    "ljspeech", "lines of id|text|normalised text", lambda data: layout_of(data) == "ljspeech", _read,
    speaker_folders=True,
)


class _Audio:
    """The audio files of a list's folder and its subfolders, by their names in the first column."""

    def __init__(self, root: Path, path: Path) -> None:
        self._root, self._path = root, path
        for self._folder in (*_FOLDERS, _FOLDERS[0]):
            names = visible_names(root / self._folder)
            self._files = audio_by_name(names)
            folders = {nfc(name) for name in names if not is_audio(name) and (root / self._folder / name).is_dir()}
            if self._folder == "":  # anything may be beside a list: only the folders that it names count
                folders.intersection_update(name.partition("/")[0] for name in self._names() if "/" in name)
            self._has_folders = bool(folders)
            if self._has_folders or any(without_suffix(name) in self._files for name in self._names()):
                break

    def _names(self) -> Iterator[str]:
        return (posix(nfc(line.partition("|")[0].strip())) for _, line in filled_lines(self._path))

    @cached_property
    def _nested(self) -> dict[str, str]:
        return audio_by_name(files_below(self._root, self._folder)) if self._has_folders else {}

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """Map file name to the paths of all files with that name."""
        paths: dict[str, list[str]] = {}
        for name, path in self._nested.items():
            paths.setdefault(PurePosixPath(name).name, []).append(path)
        return paths

    @cached_property
    def _ids(self) -> dict[str, str]:
        return clip_ids(without_suffix(name) for name in self._names())

    def find(self, named: str, location: str) -> tuple[str, str]:
        """Return (id, source) of a clip; a missing file gets a path in the folder of the others.

        Raises a `LockstepError` if several folders hold a file of this name.
        """
        clip_id, file = self._file(nfc(named), location)
        return clip_id, os.path.join(self._folder, file or f"{without_suffix(named)}{SUFFIXES[0]}")

    def _file(self, named: str, location: str) -> tuple[str, str | None]:
        """Return (id, path in the folder); the path is None for a missing file."""
        file = self._files.get(named)
        if file is None and is_audio(named) and without_suffix(named) in self._files:
            return without_suffix(named), self._files[without_suffix(named)]
        if file is None and self._nested:
            path = self._nested.get(without_suffix(named))
            if path:
                return self._ids[without_suffix(named)], path
            paths = self._by_name.get(named, [])
            if len(paths) > 1:
                problem = f"{len(paths)} files called {named!r}, the first are {paths[0]} and {paths[1]}"
                raise LockstepError(location, found=problem, fix="write the folder before the id, as in p225/p225_001")
            file = paths[0] if paths else None
        return named, file
