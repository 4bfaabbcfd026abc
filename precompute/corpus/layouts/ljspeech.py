"""The LJSpeech layout: `metadata.csv` of `id|text|normalised text|speaker|language`, audio in `wavs/` or the like."""

import os
from collections.abc import Iterator
from pathlib import Path

from xtts.precompute.corpus.corpus_files import (
    FilesByName,
    audio_by_name,
    clip_ids,
    is_audio,
    nfc,
    posix,
    source_of,
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
    (folder, nested), width = _audio_folder(path), usual_width(sampled_lines(path))
    root, ids = path.parent / folder, clip_ids(map(without_suffix, _names(path)))
    files = FilesByName(root, nested=nested)
    for location, line in filled_lines(path):
        columns = [column.strip() for column in line.split("|")]
        if len(line.rstrip("| \t").split("|")) > width:
            problem, fix = f"{len(columns)} columns", "remove the | from the text"
            raise LockstepError(location, found=problem, expected=f"{width} as in most lines", fix=fix)
        if not 2 <= len(columns) <= 5:
            problem = "one column" if len(columns) == 1 else f"{len(columns)} columns"
            expected = "id|text, optionally followed by |normalised text|speaker|language"
            raise LockstepError(location, found=problem, expected=expected)
        first, raw, normalised, speaker, language = (*columns, "", "", "")[:5]
        named = posix(nfc(first))
        source = files.anywhere(source_of(root, named, ("",), location), named, location)
        yield checked_clip(
            ids[without_suffix(named)], normalised or raw, os.path.join(folder, source), location=location,
            speaker=speaker, normalised=bool(normalised), language=language,
        )


LJSPEECH = Layout(
    "ljspeech", "lines of id|text|normalised text", lambda data: layout_of(data) == "ljspeech", _read,
    speaker_folders=True,
)


def _names(path: Path) -> Iterator[str]:
    return (posix(nfc(line.partition("|")[0].strip())) for _, line in filled_lines(path))


def _audio_folder(path: Path) -> tuple[str, bool]:
    """Return the first of `_FOLDERS` beside a list that holds a listed file, and whether its folders may hold some."""
    root = path.parent
    for folder in (*_FOLDERS, _FOLDERS[0]):
        names = visible_names(root / folder)
        files = audio_by_name(names)
        folders = {nfc(name) for name in names if not is_audio(name) and (root / folder / name).is_dir()}
        if folder == "":  # anything may be beside a list: only the folders that it names count
            folders.intersection_update(name.partition("/")[0] for name in _names(path) if "/" in name)
        if folders or any(without_suffix(name) in files for name in _names(path)):
            break
    return folder, bool(folders)
