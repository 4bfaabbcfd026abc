"""A folder in place of an object store, by which `make test` tests stores without a server."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from xtts.shared.cache import object_store


class FolderStore(LocalFileSystem):
    """Arrow's local file system, whose folders are made as they are needed."""

    def open_output_stream(self, path, **options):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return super().open_output_stream(path, **options)


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.long)])
def bucket(request, tmp_path, monkeypatch) -> str:
    """The URL of an empty bucket: on this disk, and in the long tests in a server of S3."""
    if request.param == "server":
        return request.getfixturevalue("object_server").bucket()

    def open_folder(url):
        return FolderStore(), url.partition("?")[0].replace("s3:/", str(tmp_path))

    monkeypatch.setattr(object_store, "open_store", open_folder)
    return "s3://bucket"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine(name)` makes this another machine: one with another user's folder."""

    def change(name):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    change("first")
    return change
