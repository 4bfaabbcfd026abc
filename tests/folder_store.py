"""A folder in the place of an object store: what `make test` shows of stores without a server."""

import hashlib
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from xtts.shared.storage import object_store
from xtts.shared.storage.object_store import Identity, ObjectStore
from xtts.shared.storage.urls import StoreUrl, location


class FolderStore(LocalFileSystem):
    """Arrow's local file system where it is no store: folders are made, and nothing is below an object."""

    def open_output_stream(self, path, **options):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return super().open_output_stream(path, **options)

    def get_file_info(self, selector):
        return [] if Path(selector.base_dir).is_file() else super().get_file_info(selector)


def identity_of(file):
    """A local file has no etag."""
    file.seek(0)
    return Identity(file.size(), hashlib.sha256(file.read()).hexdigest())


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.long)])
def bucket(request, tmp_path, monkeypatch) -> StoreUrl:
    """An empty bucket: of this disk, and in the long tests of a server of S3; the user's folder is the test's alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    if request.param == "server":
        return StoreUrl(request.getfixturevalue("object_server").bucket())
    opened = property(lambda store: (FolderStore(), store.url.place.replace("s3:/", str(tmp_path))))
    monkeypatch.setattr(ObjectStore, "_opened", opened)
    monkeypatch.setattr(object_store, "_identity_of", identity_of)
    return location("s3://bucket")
