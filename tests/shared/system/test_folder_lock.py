"""One process per folder; a system without file locks is told in words."""

import sys

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import exclusive


def test_a_second_lock_of_a_folder_is_refused_until_the_first_ends(tmp_path):
    with (
        exclusive(tmp_path),
        pytest.raises(LockstepError, match="another process is at work"),
        exclusive(tmp_path),
    ):
        pass
    with exclusive(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_without_fcntl_the_systems_that_do_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(LockstepError, match=r"no fcntl, as on Windows\), expected Linux, macOS or WSL2"):
        exclusive(tmp_path).__enter__()
