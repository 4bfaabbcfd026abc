"""Files of a corpus: which lie below a folder, where a named one lies, and what the clips in them are called."""

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from xtts.shared.errors import LockstepError

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".opus", ".aiff", ".aif", ".au", ".caf", ".w64")
"""Formats of libsndfile that are looked for, the first first."""
UNREADABLE = (".m4a", ".mp4", ".aac", ".wma", ".webm", ".amr")
_LINK_FIX = "copy it into the corpus, or list it in a JSON-lines manifest by its absolute path"


def without_suffix(name: str) -> str:
    """A path without the suffix of an audio file, in capitals or not."""
    return name[: -len(_suffix(name))] if is_audio(name) else name


def is_audio(name: str) -> bool:
    """Whether a path ends as an audio file does."""
    return _suffix(name).lower() in SUFFIXES


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1]


def nfc(name: str) -> str:
    """The name in composed form (NFC); macOS lists names decomposed (NFD)."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def check_inside(root: Path, source: str) -> None:
    """Raise for a file, relative to `root`, that is a link out of it."""
    if not Path(os.path.realpath(root / source)).is_relative_to(os.path.realpath(root)):
        raise LockstepError(str(root / source), found="a link out of the corpus", fix=_LINK_FIX)


def files_below(root: Path, folder: str = "") -> list[str]:
    """Paths of the regular files below `root / folder`, relative to it, sorted; hidden ones left out.

    Links within the corpus are followed; a folder with several paths is visited once. A `LockstepError` where a folder
    cannot be read, or a link leads out of `root`.
    """
    found, waiting, links, visited = list[str](), [""], list[str](), set[str]()
    while waiting or links:
        below = waiting.pop() if waiting else links.pop(0)  # links last: what they lead to may have been visited
        path = os.path.realpath(root / folder / below)
        if path in visited:
            continue
        visited.add(path)
        for entry in listed(root, os.path.join(folder, below)):
            if _is(entry.is_dir):
                (links if entry.is_symlink() else waiting).append(f"{below}{entry.name}/")
            elif _is(entry.is_file):
                found.append(below + entry.name)
        links.sort()
    return sorted(found)


def listed(root: Path, folder: str) -> "list[os.DirEntry[str]]":
    """What lies in `root / folder`, without what is hidden.

    A `LockstepError` where that cannot be read, or leads out of `root`, as a link or by one in it.
    """
    check_inside(root, folder)
    try:
        with os.scandir(root / folder) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise LockstepError(str(root / folder), found=f"cannot be read ({error.strerror})") from None
    for entry in shown:
        if entry.is_symlink():
            check_inside(root, os.path.join(folder, entry.name))
    return shown


def _is(asked: Callable[[], bool]) -> bool:
    """What an entry of a folder says of itself; a link to itself is nothing."""
    try:
        return asked()
    except OSError:
        return False


def audio_by_name(paths: Iterable[str]) -> dict[str, str]:
    """`nfc` path without suffix to path; of a clip in several formats the first of `SUFFIXES`."""
    ranked = sorted(filter(is_audio, paths), key=lambda path: (-SUFFIXES.index(_suffix(path).lower()), path))
    return {nfc(without_suffix(path)): path for path in ranked}


def clip_ids(paths: Iterable[str]) -> dict[str, str]:
    """Path without suffix to the id of its clip: the file's own name, else the whole path joined by `_`.

    The whole path is taken where another path has the same file name: `p1/a` and `p2/a` are `p1_a` and `p2_a`.
    """
    different = dict.fromkeys(paths)
    uses = Counter(PurePosixPath(path).name for path in different)
    return {path: _clip_id(path, unique=uses[PurePosixPath(path).name] == 1) for path in different}


def _clip_id(path: str, *, unique: bool) -> str:
    name = PurePosixPath(path).name
    return name if unique else "_".join(part for part in PurePosixPath(path).parts if part != "/")


def visible_names(folder: Path) -> list[str]:
    """Names in a folder, sorted, without hidden ones; none where it cannot be read, or is no folder."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def described_files(root: Path, folders: Iterable[str]) -> str:
    """What lies in those of some folders that there are: `24 .mp4 in wavs, 1 .csv in .`, and what no build can read.

    Other folders are named where audio lies in them.
    """
    said, unread, named = [], "", [*folders]
    beside = (name for name in visible_names(root) if name not in named)
    others = [name for name in beside if any(map(is_audio, visible_names(root / name)))]
    for folder in [*named, *others[:3]]:
        try:
            entries = [entry for entry in os.scandir(root / folder) if not entry.name.startswith(".")]
        except OSError:
            continue
        kinds = Counter(_suffix(one.name) or "without a suffix" for one in entries if _is(one.is_file)).most_common(3)
        counts = " and ".join(f"{count} {kind}" for kind, count in kinds) or "nothing"
        said.append(f"{counts} in {folder}")
        if unreadable := [kind for kind, _ in kinds if kind in UNREADABLE]:
            unread = f"; convert {unreadable[0]} to .wav or .flac, such as by ffmpeg: libsndfile does not read it"
    return (", ".join(said) or "nothing") + unread


def source_of(root: Path, named: str, folders: tuple[str, ...], where: str) -> str:
    """Where the audio file lies that a line of a list names, relative to `root`; absolute where it lies elsewhere.

    It is looked for in `folders`, as named, then with each of `SUFFIXES`, which may replace the one that it has. One
    that is nowhere is said to lie in the last of them: the index will call it missing.

    A `LockstepError` where the name is no path, leads out of the corpus by `..`, or the file is a link out of it.
    """
    path = PurePosixPath(named)
    if not named or not path.name or "\0" in named:
        raise LockstepError(where, found=f"file {named[:60]!r}", expected="the path of an audio file")
    if ".." in path.parts:
        raise LockstepError(where, found=f"file {named[:60]!r} reads as a path out of the corpus")
    if path.is_absolute():
        here = root.absolute()
        if not path.is_relative_to(here):
            return named
        path, folders = path.relative_to(here), ("",)
    candidates = [PurePosixPath(folder) / path for folder in folders]
    named_whole = [str(one) for one in candidates if is_audio(path.name)]
    others = [f"{without_suffix(str(one))}{ending}" for one in candidates for ending in SUFFIXES]
    for candidate in named_whole + others:
        for spelled in dict.fromkeys((candidate, nfc(candidate), unicodedata.normalize("NFD", candidate))):
            if os.path.isfile(root / spelled):  # of any length, unlike a `Path`'s
                check_inside(root, spelled)
                return spelled
    return f"{candidates[-1]}{'' if named_whole else SUFFIXES[0]}"
