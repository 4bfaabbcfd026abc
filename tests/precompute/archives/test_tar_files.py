"""Members of tar files: read in place byte for byte; broken and hostile files give only a message."""

import tarfile

import pytest
from builds import write_tar

from xtts.precompute.archives.tar_files import read_member, tar_members
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.errors import LockstepError

MEMBERS = [("./a.wav", bytes(range(256)) * 5), (f"{'long/' * 40}b.wav", b"x"), ("été.txt", b""), ("c", b"y" * 513)]


def special(name: str, kind: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, "/etc/passwd"
    return header


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_members_are_read_byte_for_byte(tmp_path, kind):
    path = write_tar(tmp_path / "a.tar", special("folder", tarfile.DIRTYPE), *MEMBERS, kind=kind)
    members = list(tar_members(path))
    assert [(member.name, read_member(path, member.extent)) for member in members] == [
        (name.removeprefix("./"), data) for name, data in MEMBERS
    ]
    with path.open("r+b") as file:
        file.truncate(int(members[-1].extent.partition("+")[0]) + 100)
    with pytest.raises(AudioProblem, match="the tar file ends before byte"):
        read_member(path, members[-1].extent)


@pytest.mark.parametrize(("member", "message"), [
    (special("a.wav", tarfile.SYMTYPE), r"a\.tar:'a\.wav': a link, expected regular files"),
    (special("a.wav", tarfile.FIFOTYPE), "not a regular file"),
    (("../a.wav", b"x"), "a name that leads out of the archive"),
    (("/a.wav", b"x"), "a name that leads out of the archive"),
])
def test_members_other_than_plain_files_are_rejected(tmp_path, member, message):
    with pytest.raises(LockstepError, match=message):
        list(tar_members(write_tar(tmp_path / "a.tar", member)))


@pytest.mark.parametrize("damage", [
    lambda data: data[:700], lambda data: data[:100], lambda data: b"", lambda data: b"x" * 2000,
    lambda data: data[:1024] + b"x" * 512 + data[1536:],
])
def test_a_broken_tar_file_is_rejected(tmp_path, damage):
    path = write_tar(tmp_path / "a.tar", ("a.txt", b"one"), ("b.txt", b"two"), ("b.wav", bytes(2000)))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(LockstepError, match=r"a\.tar: cannot be read as a tar file \(.*\), expected a whole tar file"):
        list(tar_members(path))
