"""Members of tar files, found by their headers and read in place: nothing is extracted."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from xtts.shared.audio.decode import AudioProblem
from xtts.shared.errors import LockstepError

SUFFIX = ".tar"
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
"""Without random access."""


class TarMember(NamedTuple):
    """A regular file in a tar file."""

    name: str
    """Without a leading `./`."""
    offset: int
    bytes: int

    @property
    def place(self) -> str:
        """As the index has it: first byte and size."""
        return f"{self.offset}+{self.bytes}"


def may_hold_tars(folder: Path) -> bool:
    """Whether tar files lie in a folder or the folders in it, compressed or not."""
    names = (path.name.lower() for pattern in ("*.[tT]*", "*/*.[tT]*") for path in folder.glob(pattern))
    return any(name.endswith((SUFFIX, *COMPRESSED)) for name in names)


def is_tar(name: str) -> bool:
    """Whether a file's name is that of a tar file that is not compressed."""
    return name.lower().endswith(SUFFIX)


def tar_members(path: Path) -> Iterator[TarMember]:
    """The regular files in their order; folders are left out.

    A `LockstepError` where it is no tar file, is broken or cut off, or a member is a link, sparse, or has a name that
    leads out of the archive.
    """
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                if not member.isdir():
                    yield _checked(member, path)
            _check_end(file, tar.offset)
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be read ({error.strerror or error})") from None
    except (tarfile.TarError, ValueError, ArithmeticError, LookupError, TypeError, RecursionError) as error:
        found = f"cannot be read as a tar file ({str(error)[:80]})"
        raise LockstepError(str(path), found=found, expected="a whole tar file, not compressed") from None


def read_member(path: Path, place: str) -> bytes:
    """The bytes of a member by its `place`; raises `OSError`, or `AudioProblem` where the file ends before."""
    offset, size = map(int, place.split("+"))
    with path.open("rb") as file:
        if offset + size > os.fstat(file.fileno()).st_size:
            raise AudioProblem("unreadable audio", f"the tar file ends before byte {offset + size}")
        file.seek(offset)
        return file.read(size)


def _checked(member: tarfile.TarInfo, path: Path) -> TarMember:
    where = f"{path}:{member.name[:60]!r}"
    if not member.isreg() or member.issparse():
        kind = "a link" if member.issym() or member.islnk() else "no regular file"
        raise LockstepError(where, found=kind, expected="regular files")
    parts = PurePosixPath(member.name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise LockstepError(where, found="a name that leads out of the archive", expected="plain relative names")
    return TarMember("/".join(parts), member.offset_data, member.size)


def _check_end(file: BinaryIO, offset: int) -> None:
    """A reader of tar files takes anything that is no header for the end; only zeros, or nothing, are."""
    file.seek(offset)
    rest = file.read(tarfile.BLOCKSIZE)
    if rest.strip(b"\0") or len(rest) not in (0, tarfile.BLOCKSIZE):
        raise tarfile.ReadError(f"no header at byte {offset}")
