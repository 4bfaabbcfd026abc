"""Members of tar files, listed by their headers and read in place: nothing is extracted."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from xtts.shared.audio.decode import AudioProblem
from xtts.shared.errors import LockstepError, refuse_pointer

SUFFIX = ".tar"
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar.zst")
"""Suffixes of tar files without random access."""
PACKED = (".zip", ".7z", ".rar", *COMPRESSED)
"""Suffixes of archives that must be unpacked."""


class TarMember(NamedTuple):
    """A regular file in a tar file."""

    name: str
    """Path in the archive, without a leading `./`."""
    extent: str
    """Offset and size in bytes, as in the source of a clip: `512+44144`."""


def may_hold_tars(folder: Path) -> bool:
    """Whether a folder or its subfolders hold tar files, compressed or not."""
    names = (path.name.lower() for pattern in ("*.[tT]*", "*/*.[tT]*") for path in folder.glob(pattern))
    return any(name.endswith((SUFFIX, *COMPRESSED)) for name in names)


def tar_members(path: Path) -> Iterator[TarMember]:
    """Yield the regular files in the order of the archive.

    Raises a `LockstepError` if it is not a tar file, broken or truncated, or a member is a link, sparse, or has a name
    that leads out of the archive.
    """
    refuse_pointer(path)
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                if not member.isdir():
                    yield _checked(member, path)
            _check_end(file, tar.offset)
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be read ({error.strerror or error})") from None
    except (tarfile.TarError, ValueError, ArithmeticError, LookupError, TypeError, RecursionError) as error:
        problem = f"cannot be read as a tar file ({str(error)[:80]})"
        raise LockstepError(str(path), found=problem, expected="a whole tar file, not compressed") from None


def read_member(path: Path, extent: str) -> bytes:
    """Return the bytes at a `TarMember.extent`; raises `OSError`, or `AudioProblem` if the file ends before them."""
    offset, size = map(int, extent.split("+"))
    with path.open("rb") as file:
        if offset + size > os.fstat(file.fileno()).st_size:
            raise AudioProblem("unreadable audio", f"the tar file ends before byte {offset + size}")
        file.seek(offset)
        return file.read(size)


def _checked(member: tarfile.TarInfo, path: Path) -> TarMember:
    location = f"{path}:{member.name[:60]!r}"
    if not member.isreg() or member.issparse():
        problem = "a link" if member.issym() or member.islnk() else "not a regular file"
        raise LockstepError(location, found=problem, expected="regular files")
    names = PurePosixPath(member.name).parts
    if not names or names[0] == "/" or ".." in names:
        raise LockstepError(location, found="a name that leads out of the archive", expected="plain relative names")
    return TarMember("/".join(names), f"{member.offset_data}+{member.size}")


def _check_end(file: BinaryIO, offset: int) -> None:
    """Raise `tarfile.ReadError` unless the archive ends with zeros or nothing: `tarfile` stops at any broken header."""
    file.seek(offset)
    block = file.read(tarfile.BLOCKSIZE)
    if block.strip(b"\0") or len(block) not in (0, tarfile.BLOCKSIZE):
        raise tarfile.ReadError(f"no header at byte {offset}")
