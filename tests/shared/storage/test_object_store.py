"""URLs and object stores: against a local folder by the same calls, and against a server on this machine."""

import hashlib
import os
import pickle
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from xtts.shared.errors import LockstepError
from xtts.shared.storage import failures
from xtts.shared.storage.object_store import ObjectStore
from xtts.shared.storage.urls import StoreUrl, path_or_url


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.long)])
def store(request, tmp_path):
    """A folder of Arrow's local file system, or one in an empty bucket."""
    if request.param == "folder":
        (tmp_path / "store" / "train").mkdir(parents=True)
        return ObjectStore(StoreUrl(f"file://{tmp_path}/store"))
    return ObjectStore(path_or_url(f"{request.getfixturevalue('object_server').bucket()}/some/folder/"))


@pytest.mark.parametrize(("text", "found"), [
    ("ftp://host/cache", "ftp://host/cache: ftp://, expected a path, or a URL that begins with s3://"),
    ("s3:///cache", "s3:///cache: no bucket, expected s3://BUCKET/FOLDER"),
    ("s3://KEY:SECRET@bucket/cache", "s3://bucket/cache: credentials in the URL"),
])  # fmt: skip
def test_an_unusable_url_is_refused_without_showing_secrets(text, found):
    with pytest.raises(LockstepError, match="expected") as error:
        path_or_url(text)
    assert str(error.value).startswith(found)
    assert "SECRET" not in str(error.value).replace("AWS_SECRET_ACCESS_KEY", "")


def test_options_go_to_arrow_but_not_into_messages(monkeypatch):
    assert path_or_url("features") == Path("features")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    url = path_or_url("s3://bucket/a/b?endpoint_override=http://127.0.0.1:9")
    assert str(url.child("c")) == "s3://bucket/a/b/c"
    assert "endpoint_override=http%3A%2F%2F127.0.0.1%3A9" in url.for_arrow()
    assert "region=eu-west-1" in url.for_arrow()
    assert url.digest != path_or_url("s3://bucket/a/b").digest
    assert "retry_limit_seconds=30" in path_or_url("gs://bucket/a").for_arrow()


def test_objects_can_be_written_listed_read_and_removed(store, tmp_path):
    assert store.list() == {}
    data = os.urandom(100_000)
    (tmp_path / "shard").write_bytes(data)
    store.upload(tmp_path / "shard", "train/shard")
    store.upload(b"{}", "cache.json")
    assert {name: info.bytes for name, info in store.list().items()} == {"train/shard": 100_000, "cache.json": 2}
    assert pickle.loads(pickle.dumps(store)).read("train/shard") == data
    store.remove(["train/shard", "gone"])
    assert set(store.list()) == {"cache.json"}


def test_a_download_is_complete_and_correct_or_leaves_no_file(store, tmp_path):
    store.upload(b"abc", "shard")
    right = hashlib.sha256(b"abc").hexdigest()
    store.download("shard", tmp_path / "a" / "shard", sha256=right)
    assert (tmp_path / "a" / "shard").read_bytes() == b"abc"
    with pytest.raises(LockstepError, match=r"shard: 3 bytes of SHA-256 ba7816bf8f01, twice, expected an object of"):
        store.download("shard", tmp_path / "b", sha256="0" * 64)
    with pytest.raises(FileNotFoundError):
        store.download("gone", tmp_path / "c")
    assert {path.name for path in tmp_path.iterdir()} - {"store"} == {"a"}


@pytest.mark.long
def test_a_missing_bucket_is_reported(object_server):
    store = ObjectStore(path_or_url("s3://no-such-bucket-here/cache"))
    with pytest.raises(LockstepError, match=r"^s3://no-such-bucket-here/cache: no such bucket; check its name"):
        store.list()
    with pytest.raises(LockstepError, match="no such bucket"):
        store.upload(b"", "cache.json")


def test_a_brief_failure_is_retried(store, tmp_path, monkeypatch):
    monkeypatch.setattr(failures, "PAUSES", (0.0, 0.0))
    store.upload(b"abc", "shard")
    (system, path), throttled = store.opened, MagicMock()
    slow = OSError("AWS Error SLOW_DOWN during GetObject operation: Please reduce your request rate")
    throttled.open_input_stream.side_effect = [slow, slow, system.open_input_stream(f"{path}/shard", compression=None)]
    store.opened = throttled, path
    store.download("shard", tmp_path / "shard")
    assert (tmp_path / "shard").read_bytes() == b"abc"


@pytest.mark.parametrize(("message", "found", "fix", "attempts"), [
    ("AWS Error NO_SUCH_BUCKET during PutObject", "no such bucket", "check its name", 1),
    ("AWS Error ACCESS_DENIED during HeadObject", "access denied: no credentials", "AWS_ACCESS_KEY_ID", 1),
    ("AWS Error NETWORK_CONNECTION: curlCode: 7", "the store does not answer", "AWS_ENDPOINT_URL", 3),
])  # fmt: skip
def test_a_permanent_failure_is_reported_at_once(monkeypatch, message, found, fix, attempts):
    monkeypatch.setattr(failures, "PAUSES", (0.0, 0.0))
    calls = []

    def fail():
        calls.append(1)
        raise OSError(message)

    with pytest.raises(LockstepError) as error:
        failures.with_retries(StoreUrl("s3://bucket/x"), fail)
    assert str(error.value).startswith(f"s3://bucket/x: {found}")
    assert fix in str(error.value)
    assert len(calls) == attempts
