"""Corpora in tar files: WebDataset, such as Emilia, with texts beside their audio."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from xtts.precompute.archives.tar_files import COMPRESSED, SUFFIX, TarMember, may_hold_tars, read_member, tar_members
from xtts.precompute.corpus.corpus_files import SUFFIXES, clip_ids, files_below, is_audio, without_suffix
from xtts.precompute.corpus.layouts.layout import Layout, checked_clip, folder_of
from xtts.precompute.corpus.layouts.manifest import first_value, parse_entry
from xtts.precompute.corpus.layouts.text_columns import USUAL_NAMES
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

_IN_TARS = "KEY.wav with KEY.json or KEY.txt in tar files"
_NORMALISED, _TEXT, _JSON = ".normalized.txt", ".txt", ".json"


def _is_web_dataset(data: Path) -> bool:
    """Whether it is a tar file, or a folder with some."""
    return data.name.lower().endswith(SUFFIX) if data.is_file() else may_hold_tars(data)


def _read_web_dataset(data: Path) -> Iterator[Clip]:
    """Yield the clips in the order of the tar files' names, then of their members.

    These are `KEY.wav` (flac, ogg, mp3) and `KEY.json`, `KEY.txt` or `KEY.normalized.txt`, as Emilia has them. The JSON
    object has `text` and optionally `id`, `speaker` and `language`, by their usual names. Audio without text is a clip
    with an empty text, text without audio a clip whose audio is missing: the index rejects both.
    """
    root = folder_of(data)
    groups = [(tar, key, members) for tar in _tars(data) for key, members in _members_by_key(root / tar).items()]
    if groups and not any(members.keys() - {"audio"} for _, _, members in groups):
        problem, fix = "audio without texts of the same names", f"unpack it: tar -xf {groups[0][0]}"
        raise LockstepError(str(data), found=problem, expected=_IN_TARS, fix=fix)
    ids = clip_ids(f"{tar.removesuffix('.tar')}/{key}" for tar, key, _ in groups)
    for tar, key, members in groups:
        fields = _fields(root / tar, key, members)
        yield checked_clip(
            fields["id"] or ids[f"{tar.removesuffix('.tar')}/{key}"], fields["normalised"] or fields["text"],
            _source(tar, members.get("audio"), f"{key}{SUFFIXES[0]}"), location=f"{root / tar}:{key[:80]!r}",
            speaker=fields["speaker"], normalised=bool(fields["normalised"]), language=fields["language"],
        )


WEB_DATASET = Layout("webdataset", _IN_TARS, _is_web_dataset, _read_web_dataset)


def _tars(data: Path) -> list[str]:
    """Return the tar files relative to the corpus' folder; raise a `LockstepError` if one is compressed."""
    names = [data.name] if data.is_file() else files_below(data)
    packed = [name for name in names if name.lower().endswith(COMPRESSED)]
    if packed:
        expected, fix = "an unpacked corpus, or tar files that are not compressed", f"unpack it: tar -xf {packed[0]}"
        raise LockstepError(str(folder_of(data) / packed[0]), found="compressed", expected=expected, fix=fix)
    return [name for name in names if name.lower().endswith(SUFFIX)]


def _source(tar: str, member: TarMember | None, name: str) -> str:
    """Return the source of a clip in a tar file; without a member, the path that it would have."""
    return f"{tar}/{member.extent if member else PurePosixPath(name).name}"


def _members_by_key(path: Path) -> dict[str, dict[str, TarMember]]:
    """Map each key, a name without suffix, to its members by kind (`audio` or a suffix of a text)."""
    members_of_key: dict[str, dict[str, TarMember]] = {}
    for member in tar_members(path):
        kind, key = _kind_and_key(member.name)
        if not kind:
            continue
        members = members_of_key.setdefault(key, {})
        if kind in members:
            problem = f"{member.name[:60]!r} beside {members[kind].name[:60]!r}"
            raise LockstepError(str(path), found=problem, expected="one of them")
        members[kind] = member
    return members_of_key


def _kind_and_key(name: str) -> tuple[str, str]:
    """Return a member's kind and key; empty for other files and hidden ones, which macOS adds to archives."""
    if PurePosixPath(name).name.startswith("."):
        return "", ""
    if is_audio(name):
        return "audio", without_suffix(name)
    suffixes = (_NORMALISED, _TEXT, _JSON)  # the longer one first
    suffix = next((suffix for suffix in suffixes if name.lower().endswith(suffix)), "")
    return suffix, name[: len(name) - len(suffix)]


def _fields(path: Path, key: str, members: dict[str, TarMember]) -> dict[str, str]:
    """Return the fields of a clip from its members by the keys of `USUAL_NAMES`; empty if they have none."""
    texts = {kind: _text(path, members[kind]) if kind in members else "" for kind in (_NORMALISED, _TEXT, _JSON)}
    location = f"{path}:{key[:80] + _JSON!r}"
    entry = parse_entry(texts[_JSON], location) if _JSON in members else {}
    fields = {kind: first_value(entry, names, location) for kind, names in USUAL_NAMES.items()}
    fields["text"] = texts[_TEXT].strip() or fields["text"]
    fields["normalised"] = texts[_NORMALISED].strip() or fields["normalised"]
    return fields


def _text(path: Path, member: TarMember) -> str:
    try:
        return read_member(path, member.extent).decode("utf-8-sig")
    except UnicodeDecodeError:
        location = f"{path}:{member.name[:80]!r}"
        raise LockstepError(location, found="not UTF-8", fix="convert the text to UTF-8") from None
