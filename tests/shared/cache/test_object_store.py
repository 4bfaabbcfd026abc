"""Copies of corpora and caches in a store, which is a folder of this disk or a server on this machine."""

import builtins

import pytest
from tables import cases

from xtts.precompute.corpus.corpus_entries import parse_data
from xtts.shared.cache import object_store
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.object_store import ObjectStore, local_cache, local_corpus, upload_cache
from xtts.shared.errors import LockstepError

CASES = cases(__file__)


@pytest.mark.parametrize(("text", "found"), CASES["urls"])
def test_an_unusable_url_is_refused_without_showing_secrets(text, found):
    with pytest.raises(LockstepError, match="expected") as error:
        local_cache(text)
    assert str(error.value).startswith(found)
    assert "SEC" not in str(error.value).replace("AWS_SECRET_ACCESS_KEY", "")


@pytest.mark.parametrize(("kind", "arguments", "found"), CASES["failures"])
def test_a_failure_is_explained(kind, arguments, found):
    found = found.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(LockstepError, match=f"^s3://b/x: {found}"), object_store._errors_explained("s3://b/x"):
        raise getattr(builtins, kind)(*arguments)


@pytest.mark.long
def test_a_missing_bucket_is_reported(object_server):
    with pytest.raises(LockstepError, match=r"^s3://no-such-bucket-here/cache: no such bucket"):
        local_cache("s3://no-such-bucket-here/cache")


def put(url, folder, *names):
    for name in names:
        ObjectStore(url).upload(folder / name, name)


def delete(url, name):
    store = ObjectStore(url)
    store.system.delete_file(f"{store.root}/{name}")


def test_a_corpus_is_copied_and_only_its_changes_later(bucket, machine, tmp_path, monkeypatch):
    url, data, names = f"{bucket}/corpus", tmp_path / "data", ("metadata.csv", "wavs/a.wav", "wavs/b.wav")
    (data / "wavs").mkdir(parents=True)
    for name in (*names, ".hidden"):
        (data / name).write_text(name)
    with pytest.raises(LockstepError, match=r"/corpus: no objects, expected the folder of a corpus"):
        local_corpus(url)
    put(url, data, *names, ".hidden")
    [entry] = parse_data(f"lj={url}")
    assert (entry.name, entry.data.name, entry.data) == ("lj", "corpus", local_corpus(url))
    assert parse_data(f"{url}?region=us-east-1")[0].name is None
    metadata, changed, same = files = [entry.data / name for name in names]
    assert {path for path in entry.data.rglob("*") if path.is_file()} == set(files)
    before = same.stat().st_ino
    (data / "wavs" / "a.wav").write_text("changed")
    put(url, data, "wavs/a.wav")
    delete(url, "metadata.csv")
    local_corpus(url)
    assert (changed.read_text(), metadata.exists(), same.stat().st_ino) == ("changed", False, before)
    listed = dict.fromkeys(("a/../../b.txt", "/etc/passwd", "a//b", ".hidden", "a/.b", "a/"), (1, 0))
    monkeypatch.setattr(ObjectStore, "list", lambda store: listed)
    with pytest.raises(LockstepError, match="no objects"):  # whose names stay in the folder
        local_corpus(url)


def test_a_cache_is_copied_whole_and_checked(bucket, machine, tiny_cache, capsys):
    url, spec = f"{bucket}/features", load_spec(tiny_cache)
    with pytest.raises(LockstepError, match=r"features/cache.json: no finished cache, expected a cache; run xtts-pre"):
        local_cache(url)
    upload_cache(tiny_cache, url)
    folder, shard = local_cache(url), spec.shards()[0].file
    assert f"{url}: copying to {folder} ({len(spec.files)} files)" in capsys.readouterr().err
    assert all((folder / name).read_bytes() == (tiny_cache / name).read_bytes() for name in spec.files)
    (folder / shard).unlink()
    local_cache(url)
    assert "(1 file)" in capsys.readouterr().err
    (folder / shard).write_bytes((folder / shard).read_bytes()[:-1] + b"?")
    put(url, folder, shard)
    machine("second")
    with pytest.raises(LockstepError, match=rf"^{url}/{shard}: damaged .*; delete this object"):
        local_cache(url)
    delete(url, shard)
    with pytest.raises(LockstepError, match=rf"^{url}/{shard}: missing"):
        local_cache(url)
    (folder / "cache.json").write_text('{"format_version": 0}')
    put(url, folder, "cache.json")
    with pytest.raises(LockstepError, match=rf"^{url}/cache.json: format version 0, .*--fresh --cache {url} "):
        local_cache(url)
