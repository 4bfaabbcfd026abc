"""Reading a corpus: which clips there are, their texts and where their audio lies. No audio is opened here."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn
from zipfile import is_zipfile

from xtts.precompute.corpus.clip_fields import check_name, check_text
from xtts.precompute.corpus.corpus_files import UNREADABLE, is_audio, nfc, visible_names, without_suffix
from xtts.precompute.corpus.layouts.delimited import (
    COMMON_VOICE,
    PIPER_COLUMNS,
    TABLE,
    NamedColumns,
    Piper,
    parse_columns,
)
from xtts.precompute.corpus.layouts.kaldi import Kaldi
from xtts.precompute.corpus.layouts.layout import Layout, folder_of
from xtts.precompute.corpus.layouts.ljspeech import LJSpeech
from xtts.precompute.corpus.layouts.manifest import LHOTSE, NEMO
from xtts.precompute.corpus.layouts.parquet import Parquet
from xtts.precompute.corpus.layouts.tar_shards import NemoTarred, WebDataset
from xtts.precompute.corpus.layouts.text_beside_audio import LIBRITTS, PLAIN_FOLDER, VCTK
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE, TABLE_SUFFIXES, table_of
from xtts.precompute.corpus.text_lines import first_line
from xtts.shared.cache.clip_index import Clip, clip_table, strings, with_column
from xtts.shared.errors import LockstepError
from xtts.shared.text.text_normalization import expand

if TYPE_CHECKING:
    import pyarrow as pa

_WITH_A_LIST: tuple[Layout, ...] = (
    LJSpeech(), Piper(), COMMON_VOICE, TABLE, Kaldi(), NEMO, LHOTSE, VCTK(), Parquet(),
)  # fmt: skip
_TAR_FILES: tuple[Layout, ...] = (WebDataset(), NemoTarred())
_WITHOUT: tuple[Layout, ...] = (LIBRITTS, PLAIN_FOLDER)
"""These are looked for where there is no list: corpora with one may have texts beside their audio as well."""
_PACKED = (".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar.zst")
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
LAYOUTS = {layout.name: layout for layout in (*_WITH_A_LIST, *_TAR_FILES, *_WITHOUT)}
"""What `--layout` may name."""
_FOLDERS_OF_SPEAKERS = ("ljspeech", "piper", "table", "columns", "nemo", "folder")
"""Layouts whose paths tell the speakers of clips that nothing else tells."""
_NO_SPEAKERS = re.compile(
    r"(wavs?|clips?|audios?|sounds?|recordings?|speech|data|corpus|flac|mp3|ogg|opus|train(ing)?|test|dev|val(id(ation)?)?"
    r"|eval(uation)?|chapters?|parts?|sessions?|days?|dis[ck]s?|cds?|books?|vol(ume)?s?|batch(es)?|splits?|sets?)"
    r"[-_. ]?\d*",
    re.IGNORECASE,
)
"""Folders that divide a corpus otherwise."""
_BATCH = 2**12
"""Clips that are Python objects at once."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus that was read."""

    root: Path
    """Sources are relative to this folder."""
    clips: Any
    """An Arrow table with the columns of `Clip`, in the order of their list, or of their paths."""
    notes: tuple[str, ...] = ()
    """Lines about what was left out."""


def read_corpus(
    data: Path, *, limit: int | None = None, layout: str | None = None, columns: str | None = None,
    words_in: str | None = None,
) -> Corpus:  # fmt: skip
    """Read the clips of a folder, or of a file that lists them.

    limit: the first so many clips. layout: one of `LAYOUTS`; looked for where it is not named. columns: those of a CSV,
    TSV or Parquet file, as in `id=0,speaker=1,text=2`. words_in: ISO code of the clips that name no language: numbers
    and abbreviations are put into words, where the corpus does not say them; None leaves them.

    A `LockstepError` where no layout fits, several do, or a line cannot be used.
    """
    import pyarrow.compute as pc

    if not os.path.isdir(data) and not os.path.isfile(data):  # unlike those of a `Path`, for a name of any length
        found = "neither a file nor a folder" if os.path.exists(data) else "no such folder"
        raise LockstepError(str(data), found=found, expected="a corpus: a folder, or a file that lists clips")
    try:
        chosen = _choose(data, layout, columns)
        notes = chosen.left_out(data) if isinstance(chosen, Parquet) else []
        by_folder = chosen.name in _FOLDERS_OF_SPEAKERS  # all of them tell which are speakers
        read = (check_text(clip, data) for clip in islice(chosen.read(data), None if by_folder else limit))
        clips = _table(read if words_in is None else (_in_words(clip, words_in) for clip in read))
    except OSError as error:
        raise LockstepError(str(error.filename or data), found=f"cannot be read ({error.strerror})") from None
    if not len(clips):
        raise LockstepError(str(table_of(data) or data), found="no clips", expected=chosen.expected)
    if by_folder:
        clips, said = _with_speakers_of_folders(clips, data)
        clips, notes = clips.slice(0, limit), [*notes, *said, *_unlisted_recordings(clips, folder_of(data))]
    unnamed = clips.filter(pc.equal(clips["speaker"], ""))
    if 0 < len(unnamed) < len(clips):
        found = f"no speaker for clip {unnamed['id'][0]}, but for others"
        raise LockstepError(str(data), found=found, expected="a speaker for every clip, or for none")
    return Corpus(root=folder_of(data), clips=clips, notes=tuple(notes))


def _table(clips: Iterator[Clip]) -> "pa.Table":
    """The clips in one table, a batch at a time; every one whose id was there before is a duplicate."""
    import pyarrow as pa
    import pyarrow.compute as pc

    batches = [clip_table([])]
    while batch := list(islice(clips, _BATCH)):
        batches.append(clip_table(batch))
    table = pa.concat_tables(batches).combine_chunks()
    ids = table["id"].combine_chunks()
    first = pc.index_in(ids, value_set=ids)
    repeated = pc.not_equal(first, pa.array(range(len(ids)), first.type))
    return with_column(table, "duplicate", repeated)


def _with_speakers_of_folders(clips: "pa.Table", data: Path) -> tuple["pa.Table", list[str]]:
    """The clips, each with the speaker whose folder it lies in, and a line that says so; of one folder as they were."""
    import pyarrow as pa
    import pyarrow.compute as pc

    folders = pc.replace_substring_regex(clips["source"], "(^|/)[^/]*$", "").combine_chunks().dictionary_encode()
    speakers = [_speaker_of(PurePosixPath(nfc(folder))) for folder in folders.dictionary.to_pylist()]
    different = sorted(set(speakers))
    if pc.any(pc.not_equal(clips["speaker"], "")).as_py() or len(different) < 2 or not different[0]:
        return clips, []
    for name in different:
        check_name(name, what="speaker", where=str(data))
    named = with_column(clips, "speaker", pa.array(speakers, pa.large_string()).take(folders.indices))
    shown = ", ".join(different[:3]) + ", ..." * (len(different) > 3)
    return named, [f"{data}: {len(different)} folders are the speakers: {shown}"]


def _unlisted_recordings(clips: "pa.Table", root: Path) -> list[str]:
    """A line about recordings beside those of a list that are not in it."""
    named = {nfc(without_suffix(source)) for source in strings(clips["source"])}
    folders = {os.path.dirname(source) for source in named if not os.path.isabs(source)}
    above = {os.path.dirname(folder) for folder in folders} - {""}
    beside = {os.path.join(folder, name) for folder in above for name in visible_names(root / folder)}
    lying = (os.path.join(folder, name) for folder in folders | beside for name in visible_names(root / folder)
             if is_audio(name) or name.endswith(UNREADABLE))  # fmt: skip
    unnamed = sorted({path for path in lying if nfc(without_suffix(path)) not in named})
    shown = ", ".join(unnamed[:3]) + ", ..." * (len(unnamed) > 3)
    return [f"{root}: {len(unnamed):,} recordings are not in the list ({shown})"] if unnamed else []


def _speaker_of(folder: PurePosixPath) -> str:
    """The first part of the path that is not called as a part of any corpus; empty where there is none."""
    parts = [] if folder.is_absolute() else folder.parts
    return next((part for part in parts if not _NO_SPEAKERS.fullmatch(part)), "")


def _in_words(clip: Clip, language: str) -> Clip:
    return clip if clip.normalised else replace(clip, text=expand(clip.text, clip.language or language))


def _choose(data: Path, layout: str | None, columns: str | None) -> Layout:
    """The layout that is named, or the one that fits."""
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
    """A table or Parquet files, whose columns are named."""
    if not Parquet().matches(data):
        return NamedColumns(named)
    tables = sorted(path.name for path in data.iterdir() if path.suffix in TABLE_SUFFIXES[:2]) if data.is_dir() else []
    if tables:
        fix = f"give {tables[0]} or the folder of the Parquet files alone to --data"
        raise LockstepError(str(data), found=f"{tables[0]} and Parquet files", expected="one of them", fix=fix)
    return Parquet(named)


def _choose_for_folder(data: Path) -> Layout:
    _refuse_archive(data / METADATA_FILE)
    listed = [one for one in _WITH_A_LIST if one.matches(data)]
    looked_for = _TAR_FILES if listed else (*_TAR_FILES, *_WITHOUT)
    fitting = [*listed, *(one for one in looked_for if one.matches(data))]
    if len(fitting) > 1:
        fix = " or ".join(f"--layout {one.name}" for one in fitting)
        found = " and ".join(one.name for one in fitting)
        raise LockstepError(str(data), found=f"files of {len(fitting)} layouts: {found}", fix=f"say which: {fix}")
    if not fitting:
        table = table_of(data)
        return _choose_for_file(table) if table else _refuse(data)
    return fitting[0]


def _refuse_columns(data: Path) -> None:
    """Raise for a list of columns whose name tells nothing, such as the `.list` of GPT-SoVITS."""
    line = first_line(data)
    kinds = PIPER_COLUMNS.get(line.count("|") + 1)
    if kinds and not line.lstrip().startswith(("{", "[")):
        named = ",".join(f"{kind}={column}" for column, kind in enumerate(kinds))
        fix = f"say which, as in --columns {named} for {'|'.join(kinds)}"
        raise LockstepError(f"{data}:1", found=f"{len(kinds)} columns", expected="JSON, or a .csv or .txt", fix=fix)


def _refuse(data: Path) -> NoReturn:
    """Say which options read what lies in a folder without a list that is known."""
    packed = [path for path in sorted(data.iterdir()) if path.name.lower().endswith(_PACKED)]
    lists = [path for path in sorted(data.iterdir()) if path.suffix in (*TABLE_SUFFIXES, ".json", ".jsonl")]
    folders = sorted({path.parent.name for name in (METADATA_FILE, *NEMO.files) for path in data.glob(f"*/{name}")})
    found, fix = "no such file", "see --columns"
    if lists:
        fix = f"give the list itself, as in --data {shlex.quote(str(lists[0]))}"
    elif folders:
        called = [f"{name}={data / name}" if not _NO_SPEAKERS.fullmatch(name) else str(data / name) for name in folders]
        each = " ".join(f"--data {shlex.quote(one)}" for one in called[:3])
        fix = f"give the folders that have lists, as in {each}{' ...' * (len(folders) > 3)}"
    elif packed:
        fix = _unpack(packed[0])
    elif labels := next(data.rglob("*.lab"), None):  # of the Montreal Forced Aligner, or labels with times of HTK
        found, fix = f"{labels.relative_to(data)} beside audio", "if the .lab files hold texts, rename them to .txt"
    expected = f"a list of clips, or one of the layouts {', '.join(LAYOUTS)}"
    raise LockstepError(str(data / METADATA_FILE), found=found, expected=expected, fix=fix)


def _refuse_archive(path: Path) -> None:
    """Raise for a file that is packed, whatever it is called."""
    if path.name.lower().endswith(_PACKED) or (path.is_file() and is_zipfile(path)):
        raise LockstepError(str(path), found="an archive", expected="an unpacked corpus", fix=_unpack(path))


def _unpack(path: Path) -> str:
    return f"unpack it: {'tar xf' if path.name.lower().endswith(_PACKED[1:]) else 'unzip'} {shlex.quote(str(path))}"


def _choose_for_file(data: Path) -> Layout:
    """A file of columns by its suffix, or else a manifest; whatever it is called, a file of JSON lines is one."""
    for archive in (Parquet(), WebDataset()):
        if archive.matches(data):
            return archive
    if data.suffix.lower() in _SPREADSHEETS:
        raise LockstepError(str(data), found="a spreadsheet", expected="a list of clips", fix="save it as CSV")
    _refuse_archive(data)
    first = first_line(data) if table_of(data) else ""
    if not first or first.lstrip().startswith("{"):
        _refuse_columns(data)
        return NEMO
    fitting = [one for one in _WITH_A_LIST if one.matches(data)]
    if not fitting:
        expected, fix = "columns with | between them, or a header", "name them, as in --columns id=0,text=1"
        raise LockstepError(f"{data}:1", found=f"{first[:80]!r}", expected=expected, fix=fix)
    return fitting[0]
