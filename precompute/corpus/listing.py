"""Reading the clips of a corpus, with their texts and the paths of their audio. No audio is opened."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NoReturn
from zipfile import is_zipfile

import pyarrow as pa
import pyarrow.compute as pc

from xtts.precompute.archives.tar_files import COMPRESSED, PACKED
from xtts.precompute.corpus.corpus_files import is_audio, nfc, visible_names, without_suffix
from xtts.precompute.corpus.layouts.delimited import (
    COMMON_VOICE,
    PIPER,
    PIPER_COLUMNS,
    QUOTED,
    TABLE,
    named_columns,
    parse_columns,
)
from xtts.precompute.corpus.layouts.kaldi import KALDI
from xtts.precompute.corpus.layouts.layout import Layout, folder_of
from xtts.precompute.corpus.layouts.ljspeech import LJSPEECH
from xtts.precompute.corpus.layouts.manifest import NEMO, NEMO_FILES
from xtts.precompute.corpus.layouts.parquet import parquet
from xtts.precompute.corpus.layouts.tar_shards import WEB_DATASET
from xtts.precompute.corpus.layouts.text_beside_audio import LIBRITTS, PLAIN_FOLDER, VCTK
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, TABLE_SUFFIXES, find_table
from xtts.precompute.corpus.speaker_folders import is_speaker, with_speakers
from xtts.precompute.corpus.text_lines import first_line
from xtts.shared.audio.other_formats import OTHER_SUFFIXES
from xtts.shared.cache.clip_index import Clip, clip_table, strings, with_column
from xtts.shared.errors import LockstepError, counted_noun, refuse_pointer
from xtts.shared.text.pronunciation import Lexicon
from xtts.shared.text.text_normalization import expand

_PARQUET = parquet({})
_WITH_A_LIST = (LJSPEECH, PIPER, COMMON_VOICE, TABLE, QUOTED, KALDI, NEMO, VCTK, _PARQUET)
_WITHOUT_A_LIST = (LIBRITTS, PLAIN_FOLDER)
"""Tried only if there is no list: a corpus with one may have texts beside its audio as well."""
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
LAYOUTS = {layout.name: layout for layout in (*_WITH_A_LIST, WEB_DATASET, *_WITHOUT_A_LIST)}
"""Layouts by their names for `--layout`."""
_BATCH = 2**12
"""Largest count of clips that are Python objects at a time."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus as read."""

    root: Path
    """The folder that sources are relative to."""
    clips: pa.Table
    """Clips, with the columns of `Clip`, in the order of the list or of the paths."""
    notes: tuple[str, ...] = ()
    """Lines to print, such as what was skipped."""


def read_corpus(
    data: Path, *, limit: int | None = None, layout: str | None = None, columns: str | None = None,
    speakers: str | None = None, words_in: str | None = None, lexicon: Lexicon | None = None,
) -> Corpus:
    """Read the clips of a folder, or of a file that lists them.

    limit: count of clips to read. layout: one of `LAYOUTS`; None to detect it. columns: those of a CSV, TSV or Parquet
    file, as in `id=0,speaker=1,text=2`. speakers: see `with_speakers`. words_in: ISO 639 code of clips that name no
    language: expand numbers and abbreviations unless the corpus gives the text in words; None leaves them. lexicon: see
    `expand`.

    Raises a `LockstepError` if no layout or several layouts fit, or a line is invalid.
    """
    refuse_pointer(data)
    if not os.path.isdir(data) and not os.path.isfile(data):  # unlike `Path.is_dir`, for a name of any length
        problem = "neither a file nor a folder" if os.path.exists(data) else "no such folder"
        raise LockstepError(str(data), found=problem, expected="a corpus: a folder, or a file that lists clips")
    try:
        chosen = _choose(data, layout, columns)
        notes = chosen.skipped(data)
        end = None if chosen.speaker_folders or speakers else limit  # all clips tell which folders are speakers
        read = islice(chosen.read(data), end)
        clips = _table(read if words_in is None else (_in_words(clip, words_in, lexicon) for clip in read))
    except OSError as error:
        raise LockstepError(str(error.filename or data), found=f"cannot be read ({error.strerror})") from None
    if not len(clips):
        raise LockstepError(
            str((find_table(data) if chosen in (LJSPEECH, PIPER, TABLE) else None) or data),
            found="no clips",
            expected=chosen.expected,
            fix="; ".join(notes),
        )
    clips, speaker_notes = with_speakers(clips, data, speakers, by_folder=chosen.speaker_folders)
    notes = [*notes, *speaker_notes]
    if chosen.has_list and end is None:
        notes = [*notes, *_unlisted_recordings(clips, folder_of(data))]
    clips = clips.slice(0, limit)
    unnamed = clips.filter(pc.equal(clips["speaker"], ""))
    if 0 < len(unnamed) < len(clips):
        problem = f"clip {unnamed['id'][0]} has no speaker, while others have one"
        raise LockstepError(str(data), found=problem, expected="a speaker for every clip, or for none")
    return Corpus(root=folder_of(data), clips=clips, notes=tuple(notes))


def _table(clips: Iterator[Clip]) -> pa.Table:
    """Collect the clips in a table; all but the first clip of an id are marked as duplicates."""
    batches = [clip_table([])]
    while batch := list(islice(clips, _BATCH)):
        batches.append(clip_table(batch))
    table = pa.concat_tables(batches).combine_chunks()
    ids = table["id"].combine_chunks()
    first = pc.index_in(ids, value_set=ids)
    return with_column(table, "duplicate", pc.not_equal(first, pa.array(range(len(ids)), first.type)))


def _unlisted_recordings(clips: pa.Table, root: Path) -> list[str]:
    """Return a line about recordings that are not listed, in the folders of listed ones or beside these folders."""
    listed = {nfc(without_suffix(source)) for source in strings(clips["source"])}
    folders = {os.path.dirname(source) for source in listed if not os.path.isabs(source)}
    parents = {os.path.dirname(folder) for folder in folders} - {""}
    siblings = {os.path.join(folder, name) for folder in parents for name in visible_names(root / folder)}
    paths = (os.path.join(folder, name) for folder in folders | siblings for name in visible_names(root / folder)
             if is_audio(name) or name.lower().endswith(OTHER_SUFFIXES))
    unlisted = sorted({path for path in paths if nfc(without_suffix(path)) not in listed})
    shown = ", ".join(unlisted[:3]) + ", ..." * (len(unlisted) > 3)
    return [f"{root}: {counted_noun(len(unlisted), 'recording')} not in the list ({shown})"] if unlisted else []


def _in_words(clip: Clip, language: str, lexicon: Lexicon | None) -> Clip:
    return clip if clip.normalised else replace(clip, text=expand(clip.text, clip.language or language, lexicon))


def _choose(data: Path, layout: str | None, columns: str | None) -> Layout:
    """Return the requested layout, or detect it."""
    if layout is not None and columns is not None:
        raise LockstepError("--layout", found=f"{layout[:40]!r} and --columns", expected="one of them")
    if columns is not None:
        return _with_columns(data, parse_columns(columns))
    if layout is not None:
        if layout not in LAYOUTS:
            raise LockstepError("--layout", found=f"{layout[:40]!r}", expected=f"one of {', '.join(LAYOUTS)}")
        return LAYOUTS[layout]
    return _choose_for_file(data) if data.is_file() else _choose_for_folder(data)


def _with_columns(data: Path, named: Mapping[str, str]) -> Layout:
    """Return the layout of a table or of Parquet files whose columns the user names."""
    if not _PARQUET.matches(data):
        return named_columns(named) if data.is_file() or find_table(data) else _reject(data)
    tables = sorted(path.name for path in data.iterdir() if path.suffix in TABLE_SUFFIXES[:2]) if data.is_dir() else []
    if tables:
        fix = f"give {tables[0]} or the folder of the Parquet files alone to --data"
        raise LockstepError(str(data), found=f"{tables[0]} and Parquet files", expected="one of them", fix=fix)
    return parquet(named)


def _choose_for_folder(data: Path) -> Layout:
    """Detect the layout of a folder; raise a `LockstepError` if several fit, or none."""
    _reject_archive(data / METADATA_FILE)
    matches = [layout for layout in _WITH_A_LIST if layout.matches(data)]
    others = (WEB_DATASET,) if matches else (WEB_DATASET, *_WITHOUT_A_LIST)
    matches += [layout for layout in others if layout.matches(data)]
    if len(matches) > 1:
        problem = f"files of {len(matches)} layouts: {' and '.join(layout.name for layout in matches)}"
        fix = f"choose one: {' or '.join(f'--layout {layout.name}' for layout in matches)}"
        raise LockstepError(str(data), found=problem, fix=fix)
    if not matches:
        table = find_table(data)
        return _choose_for_file(table) if table else _reject(data)
    return matches[0]


def _reject_columns(data: Path) -> None:
    """Raise a `LockstepError` for columns in a file with an unknown suffix, such as the `.list` of GPT-SoVITS."""
    line = first_line(data)
    kinds = PIPER_COLUMNS.get(line.count("|") + 1)
    if kinds and not line.lstrip().startswith(("{", "[")):
        option = ",".join(f"{kind}={column}" for column, kind in enumerate(kinds))
        fix = f"name them, as in --columns {option} for {'|'.join(kinds)}"
        raise LockstepError(f"{data}:1", found=f"{len(kinds)} columns", expected="JSON, or a .csv or .txt", fix=fix)


def _reject(data: Path) -> NoReturn:
    """Raise a `LockstepError` for a folder of no known layout, with the options that would read its files."""
    packed = [path for path in sorted(data.iterdir()) if path.name.lower().endswith(PACKED)]
    lists = [path for path in sorted(data.iterdir()) if path.is_file() and _may_be_list(path)]
    names = (METADATA_FILE, "validated.tsv", *NEMO_FILES)
    folders = sorted({path.parent.name for name in names for path in data.glob(f"*/{name}")})
    problem, fix = "no such file", "see --columns"
    unreadable = sorted({path.suffix for path in data.iterdir() if path.name.endswith(OTHER_SUFFIXES)})
    if unreadable and not any(is_audio(path.name) for path in data.iterdir()):
        problem = f"no such file, and {unreadable[0]} files, which libsndfile does not read"
        fix = f"convert {unreadable[0]} to .wav or .flac, e.g. with ffmpeg"
    elif lists:
        fix = f"give the list itself, as in --data {shlex.quote(str(lists[0]))}"
    elif folders:
        values = [f"{name}={data / name}" if is_speaker(name) else str(data / name) for name in folders]
        options = " ".join(f"--data {shlex.quote(value)}" for value in values[:3])
        fix = f"give the folders that have lists, as in {options}{' ...' * (len(folders) > 3)}"
    elif packed:
        fix = _unpack(packed[0])
    elif labels := next(data.rglob("*.lab"), None):  # texts of the Montreal Forced Aligner, or times of HTK
        problem, fix = f"{labels.relative_to(data)} beside audio", "if the .lab files hold texts, rename them to .txt"
    expected = f"a list of clips, or one of the layouts {', '.join(LAYOUTS)}"
    raise LockstepError(str(data / METADATA_FILE), found=problem, expected=expected, fix=fix)


def _may_be_list(path: Path) -> bool:
    """Whether a file may list clips: by its suffix, of a text by columns in its first lines, which no README has."""
    with path.open("rb") as file:
        has_columns = re.search(rb"^[^|\t\n]*\S[|\t]", file.read(2**12), re.MULTILINE) is not None
    suffix = path.suffix.lower()
    return suffix in (".csv", ".tsv", ".json", ".jsonl") or (suffix == ".txt" and has_columns)


def _reject_archive(path: Path) -> None:
    """Raise a `LockstepError` for an archive, even one with another suffix."""
    if path.name.lower().endswith(PACKED) or (path.is_file() and is_zipfile(path)):
        raise LockstepError(str(path), found="an archive", expected="an unpacked corpus", fix=_unpack(path))


def _unpack(path: Path) -> str:
    """Return the fix for an archive."""
    program = {".7z": "7z x", ".rar": "unrar x"}.get(path.suffix.lower(), "unzip")
    program = "tar xf" if path.name.lower().endswith(COMPRESSED) else program
    return f"unpack it: {program} {shlex.quote(str(path))}"


def _choose_for_file(data: Path) -> Layout:
    """Detect the layout of a file: an archive, columns if it has their suffix, or JSON lines with any suffix."""
    for layout in (_PARQUET, WEB_DATASET):
        if layout.matches(data):
            return layout
    if data.suffix.lower() in _SPREADSHEETS:
        raise LockstepError(str(data), found="a spreadsheet", expected="a list of clips", fix="save it as CSV")
    _reject_archive(data)
    first = first_line(data) if find_table(data) else ""
    if not first or first.lstrip().startswith("{"):
        _reject_columns(data)
        return NEMO
    matches = [layout for layout in _WITH_A_LIST if layout.matches(data)]
    if not matches:
        expected, fix = "columns with | between them, or a header", "name them, as in --columns id=0,text=1"
        raise LockstepError(f"{data}:1", found=f"{first[:80]!r}", expected=expected, fix=fix)
    return matches[0]
