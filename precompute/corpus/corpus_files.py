"""Files of a corpus: listing those below a folder, finding the audio of a clip, and deriving ids from file names."""

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from os.path import splitext
from pathlib import Path, PurePosixPath

from xtts.precompute.archives.tar_files import PACKED, SUFFIX
from xtts.shared.audio.other_formats import OTHER_SUFFIXES
from xtts.shared.errors import LockstepError

SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".mp3", ".opus", ".aiff", ".aif", ".aifc", ".au", ".caf", ".w64")
"""Suffixes of formats that libsndfile reads, in the order of preference."""


def posix(path: str) -> str:
    """Return a path with slashes, also if a list was written on Windows."""
    return path if "/" in path else path.replace("\\", "/")


def without_suffix(name: str) -> str:
    """Return a path without its audio suffix, in either case."""
    return splitext(name)[0] if is_audio(name) else name


def is_audio(name: str) -> bool:
    """Whether a path has an audio suffix."""
    return name.lower().endswith(SUFFIXES)


def nfc(name: str) -> str:
    """Return the name in composed form (NFC); macOS lists names decomposed (NFD)."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def files_below(root: Path, folder: str = "") -> list[str]:
    """Return sorted paths of the regular files below `root / folder`, relative to it, without hidden ones.

    Links are followed wherever they lead, but for one to a folder that holds it; a folder with several paths is visited
    once. Raises a `LockstepError` if a folder cannot be read.
    """
    files, waiting, links, visited = list[str](), [""], list[str](), set[str]()
    while waiting or links:
        is_link = not waiting
        below = links.pop(0) if is_link else waiting.pop()  # links last: what they lead to may have been visited
        path = os.path.realpath(root / folder / below)
        if path in visited or (is_link and Path(os.path.realpath((root / folder / below).parent)).is_relative_to(path)):
            continue
        visited.add(path)
        for entry in _entries(root / folder / below):
            if _holds(entry.is_dir):
                (links if entry.is_symlink() else waiting).append(f"{below}{entry.name}/")
            elif _holds(entry.is_file):
                files.append(below + entry.name)
        links.sort()
    return sorted(files)


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    """Return the entries of a folder without hidden ones; raises a `LockstepError` if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise LockstepError(str(folder), found=f"cannot be read ({error.strerror})") from None


def _holds(check: Callable[[], bool]) -> bool:
    """Call a method of an `os.DirEntry`; False if it fails, as for a link to itself."""
    try:
        return check()
    except OSError:
        return False


def audio_by_name(paths: Iterable[str]) -> dict[str, str]:
    """Map `nfc` path without suffix to path; a clip in several formats has the first of `SUFFIXES`."""
    ranked = sorted(filter(is_audio, paths), key=lambda path: (-SUFFIXES.index(splitext(path)[1].lower()), path))
    return {nfc(without_suffix(path)): path for path in ranked}


def clip_ids(paths: Iterable[str]) -> dict[str, str]:
    """Map path without suffix to clip id: the file name, or the path joined by `_` if another path has that name.

    `p1/a` and `p2/a` become `p1_a` and `p2_a`.
    """
    unique = {path: PurePosixPath(path) for path in paths}
    uses = Counter(path.name for path in unique.values())
    return {
        given: path.name if uses[path.name] == 1 else "_".join(name for name in path.parts if name != "/")
        for given, path in unique.items()
    }


def visible_names(folder: Path) -> list[str]:
    """Return the sorted names in a folder without hidden ones; none if it cannot be read."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def described_files(root: Path, folders: Iterable[str]) -> str:
    """Describe the files in `folders` below `root`, as in `24 .mp4 in wavs, 1 .csv in .`, and a format to convert.

    Three other folders are described as well, if they hold audio.
    """
    descriptions, convert, listed_folders = [], "", [*folders]
    unlisted = (name for name in visible_names(root) if name not in listed_folders)
    others = [name for name in unlisted if any(map(is_audio, visible_names(root / name)))]
    for folder in [*listed_folders, *others[:3]]:
        if not (root / folder).is_dir():
            continue
        names = [name for name in visible_names(root / folder) if os.path.isfile(root / folder / name)]
        suffixes = Counter(splitext(name)[1] or "without a suffix" for name in names).most_common(3)
        counts = " and ".join(f"{count} {suffix}" for suffix, count in suffixes) or "nothing"
        descriptions.append(f"{counts} in {folder}")
        if packed := [name for name in names if name.lower().endswith((*PACKED, SUFFIX))]:
            convert = f"; unpack {packed[0]}"
        if unreadable := [suffix for suffix, _ in suffixes if suffix.lower() in OTHER_SUFFIXES]:
            convert = f"; convert {unreadable[0]} to .wav or .flac, e.g. with ffmpeg: libsndfile does not read it"
    return (", ".join(descriptions) or "nothing") + convert


class FilesByName:
    """The audio files below a folder by their names, for lists that omit folders above them."""

    def __init__(self, root: Path, *, nested: bool = True) -> None:
        """nested: whether files in folders of the folder count."""
        self._root, self._nested = root, nested

    @cached_property
    def _paths(self) -> dict[str, list[str]]:
        paths: dict[str, list[str]] = {}
        below = files_below(self._root) if self._nested else visible_names(self._root)
        for name, path in audio_by_name(below).items():
            paths.setdefault(PurePosixPath(name).name, []).append(path)
        return paths

    def anywhere(self, source: str, named: str, location: str = "") -> str:
        """Return a path of `source_of` or, if it is missing, that of the only file below that ends with the named path.

        An absolute path, as from another machine, may also end with the path of that file. Raises a `LockstepError` at
        `location`, if one is given, for several such files.
        """
        if os.path.isfile(self._root / source):
            return source
        end = f"/{nfc(without_suffix(named))}"
        absolute = named[:1] == "/" or named[1:2] == ":"
        same_name = {path: f"/{nfc(without_suffix(path))}" for path in self._paths.get(PurePosixPath(end).name, [])}
        matches = [path for path, own in same_name.items() if own.endswith(end) or (absolute and end.endswith(own))]
        if len(matches) > 1 and location:
            problem = f"{len(matches)} files called {named!r}, the first are {matches[0]} and {matches[1]}"
            raise LockstepError(location, found=problem, fix="write the folder before the id, as in p225/p225_001")
        return matches[0] if len(matches) == 1 else source


def source_of(root: Path, named: str, folders: tuple[str, ...], location: str) -> str:
    """Return the path of the audio file that a list names, relative to `root`; absolute if outside of it.

    `folders` are searched for the file, as named, then with each of `SUFFIXES` instead of its own. A missing file gets
    a path in the last folder: the index will call it missing.

    Raises a `LockstepError` if the name is not a path, or leads out of the corpus by `..`.
    """
    path = PurePosixPath(named)
    if not named or not path.name or "\0" in named:
        raise LockstepError(location, found=f"file {named[:60]!r}", expected="the path of an audio file")
    if ".." in path.parts:
        raise LockstepError(location, found=f"file {named[:60]!r} leads out of the corpus")
    if path.is_absolute():
        if not path.is_relative_to(root.absolute()):
            return named
        path, folders = path.relative_to(root.absolute()), ("",)
    paths = [str(PurePosixPath(folder) / path) for folder in folders]
    as_named = paths if is_audio(path.name) else []
    with_suffixes = [f"{without_suffix(path)}{suffix}" for path in paths for suffix in SUFFIXES]
    for candidate in as_named + with_suffixes:
        for spelling in dict.fromkeys((candidate, nfc(candidate), unicodedata.normalize("NFD", candidate))):
            if os.path.isfile(root / spelling):  # accepts a name of any length, unlike `Path.is_file`
                return spelling
    return f"{paths[-1]}{'' if as_named else SUFFIXES[0]}"
