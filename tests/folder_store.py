"""A folder in place of an object store, by which `make test` tests stores without a server."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from xtts.shared.storage.object_store import ObjectStore
from xtts.shared.storage.urls import StoreUrl, path_or_url


class FolderStore(LocalFileSystem):
    """Arrow's local file system where it is no store: folders are made, and nothing is below an object."""

    def open_output_stream(self, path, **options):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return super().open_output_stream(path, **options)

    def get_file_info(self, selector):
        return [] if Path(selector.base_dir).is_file() else super().get_file_info(selector)


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.long)])
def bucket(request, tmp_path, monkeypatch) -> StoreUrl:
    """An empty bucket: of this disk, and in the long tests of a server of S3; the user's folder is the test's alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    if request.param == "server":
        return StoreUrl(request.getfixturevalue("object_server").bucket())
    opened = property(lambda store: (FolderStore(), store.url.base.replace("s3:/", str(tmp_path))))
    monkeypatch.setattr(ObjectStore, "opened", opened)
    return path_or_url("s3://bucket")
