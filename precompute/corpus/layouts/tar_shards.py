"""Corpora in tar files: WebDataset and Emilia, whose texts lie beside their audio, and NeMo's tarred data sets."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from xtts.precompute.archives.tar_files import (
    COMPRESSED,
    TarMember,
    is_tar,
    may_hold_tars,
    read_member,
    tar_members,
)
from xtts.precompute.corpus.corpus_files import SUFFIXES, clip_ids, files_below, is_audio, without_suffix
from xtts.precompute.corpus.layouts.layout import checked_clip, folder_of
from xtts.precompute.corpus.layouts.manifest import clip_of_entry, name_of, parse_entry
from xtts.precompute.corpus.layouts.text_columns import USUAL_NAMES
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_NORMALISED, _TEXT, _JSON = ".normalized.txt", ".txt", ".json"
_MANIFESTS = re.compile(r"(.*/)?[^/]*manifest[^/]*\.jsonl?")


class WebDataset:
    """Tar files of `KEY.wav` (flac, ogg, mp3) and `KEY.json`, `KEY.txt` or `KEY.normalized.txt`; Emilia is so too.

    The JSON object has `text` and, where wanted, `id`, `speaker` and `language`, by their usual names.
    """

    name, expected = "webdataset", "KEY.wav with KEY.json or KEY.txt in tar files"

    def matches(self, data: Path) -> bool:
        """A tar file, or a folder with some and without NeMo's manifest."""
        return is_tar(data.name) if data.is_file() else may_hold_tars(data) and not _manifests(data)

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of the tar files' names and of their members.

        Audio without text is a clip with an empty text, text without audio one whose audio is missing: the index
        rejects both.
        """
        root = folder_of(data)
        groups = [(tar, key, parts) for tar in _tars(data) for key, parts in _by_key(root / tar).items()]
        if groups and not any(parts.keys() - {"audio"} for _, _, parts in groups):
            found, fix = "audio without texts of the same names", f"unpack it: tar -xf {groups[0][0]}"
            raise LockstepError(str(data), found=found, expected=self.expected, fix=fix)
        ids = clip_ids(f"{tar.removesuffix('.tar')}/{key}" for tar, key, _ in groups)
        for tar, key, parts in groups:
            where, said = f"{root / tar}:{key[:80]!r}", _said(root / tar, key, parts)
            yield checked_clip(
                said["id"] or ids[f"{tar.removesuffix('.tar')}/{key}"], said["normalised"] or said["text"],
                _source(tar, parts.get("audio"), f"{key}{SUFFIXES[0]}"), where=where, speaker=said["speaker"],
                normalised=bool(said["normalised"]), language=said["language"],
            )  # fmt: skip


class NemoTarred:
    """Tar files of audio beside a manifest of JSON lines, `audio_filepath` a member of the tar file `shard_id`."""

    name, expected = "nemo-tarred", "lines of a manifest"

    def matches(self, data: Path) -> bool:
        """A folder with tar files and a manifest."""
        return data.is_dir() and may_hold_tars(data) and bool(_manifests(data))

    def read(self, data: Path) -> Iterator[Clip]:
        """The clips in the order of the manifest's lines."""
        root, tars = folder_of(data), _by_number(data)
        members = {number: {member.name: member for member in tar_members(root / tar)} for number, tar in tars.items()}
        for where, line in (line for manifest in _manifests(data) for line in filled_lines(root / manifest)):
            entry = parse_entry(line, where)
            number = entry.get("shard_id", next(iter(tars)) if len(tars) == 1 else None)
            if type(number) is not int or number not in tars:
                found = f"shard_id is {number!r:.40}"
                raise LockstepError(where, found=found, expected=f"the number of one of {len(tars)} tar files")
            file = PurePosixPath(str(entry.get("audio_filepath"))).as_posix()
            yield clip_of_entry(entry, _source(tars[number], members[number].get(file), file), where=where)


def _tars(data: Path) -> list[str]:
    """Tar files of a corpus, relative to its folder; a `LockstepError` for compressed ones."""
    names = [data.name] if data.is_file() else files_below(data)
    packed = [name for name in names if name.lower().endswith(COMPRESSED)]
    if packed:
        expected, fix = "an unpacked corpus, or tar files that are not compressed", f"unpack it: tar -xf {packed[0]}"
        raise LockstepError(str(folder_of(data) / packed[0]), found="compressed", expected=expected, fix=fix)
    return [name for name in names if is_tar(name)]


def _manifests(data: Path) -> list[str]:
    return [name for name in files_below(data) if _MANIFESTS.fullmatch(name)]


def _by_number(data: Path) -> dict[int, str]:
    """The tar files by the last number in their names; a `LockstepError` where two have one number."""
    tars: dict[int, str] = {}
    for tar in _tars(data):
        digits = re.findall(r"\d+", Path(tar).stem)
        number = int(digits[-1][:18]) if digits else 0
        if tars.setdefault(number, tar) != tar:
            found = f"{tars[number]} and {tar} for shard_id {number}"
            fix = "build each folder as a corpus of its own"
            raise LockstepError(str(data), found=found, expected="one tar file for each shard_id", fix=fix)
    return tars


def _source(tar: str, member: TarMember | None, name: str) -> str:
    """Where a clip's audio lies; where there is none, the path that it would have."""
    return f"{tar}/{member.place if member else PurePosixPath(name).name}"


def _by_key(path: Path) -> dict[str, dict[str, TarMember]]:
    """The members of a tar file by their names without suffix, and by what they are."""
    groups: dict[str, dict[str, TarMember]] = {}
    for member in tar_members(path):
        for kind, key in _kinds(member.name):
            parts = groups.setdefault(key, {})
            if kind in parts:
                found = f"{member.name[:60]!r} beside {parts[kind].name[:60]!r}"
                raise LockstepError(str(path), found=found, expected="one of them")
            parts[kind] = member
    return groups


def _kinds(name: str) -> Iterator[tuple[str, str]]:
    """What a member is, and its key; nothing for other files, nor for hidden ones, which macOS puts beside others."""
    if PurePosixPath(name).name.startswith("."):
        return
    if is_audio(name):
        yield "audio", without_suffix(name)
    else:
        for suffix in (_NORMALISED, _TEXT, _JSON):  # the longer one first
            if name.endswith(suffix):
                yield suffix, name.removesuffix(suffix)
                return


def _said(path: Path, key: str, parts: dict[str, TarMember]) -> dict[str, str]:
    """What a group of members says of its clip, empty where it says nothing."""
    texts = {kind: _text(path, parts[kind]) if kind in parts else "" for kind in (_NORMALISED, _TEXT, _JSON)}
    where = f"{path}:{key[:80] + _JSON!r}"
    entry = parse_entry(texts[_JSON], where) if _JSON in parts else {}
    said = {fact: name_of(entry, names, where) for fact, names in USUAL_NAMES.items()}
    said["text"] = texts[_TEXT].strip() or said["text"]
    said["normalised"] = texts[_NORMALISED].strip() or said["normalised"]
    return said


def _text(path: Path, member: TarMember) -> str:
    where = f"{path}:{member.name[:80]!r}"
    try:
        return read_member(path, member.place).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LockstepError(where, found="not UTF-8", fix="convert the text to UTF-8") from None
