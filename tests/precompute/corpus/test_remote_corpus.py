"""Corpora in an object store: the shards of the same corpus in a folder, and what changes between builds."""

import pytest
from builds import build, tree

from xtts.precompute.corpus.corpus_entries import parse_data
from xtts.precompute.corpus.remote_corpus import with_folders
from xtts.shared.cache.cache_spec import SPEC_FILE, SPLITS, load_spec
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import ObjectInfo, ObjectStore


@pytest.fixture
def url(bucket, tiny_corpus):
    """The tiny corpus in a bucket."""
    place = bucket.child("LJSpeech-1.1")
    for path in sorted(path for path in tiny_corpus.rglob("*") if path.is_file()):
        ObjectStore(place).upload(path, path.relative_to(tiny_corpus).as_posix())
    return place


def test_a_remote_corpus_gives_the_shards_of_a_local_one(url, tmp_path, tiny_corpus, tiny_cache, tiny_config):
    cache = tmp_path / "cache"
    report = build(url.full, cache, tiny_config)
    assert report.spec.shards(*SPLITS) == load_spec(tiny_cache).shards(*SPLITS)
    folder = url.local_folder("corpora")
    wav, other = folder / "wavs" / "tone-0000.wav", folder / "wavs" / "tone-0001.wav"
    assert wav.read_bytes() == (tiny_corpus / "wavs" / "tone-0000.wav").read_bytes(), "a copy of the object"
    assert SPEC_FILE not in ObjectStore(url).list(), "the cache is no part of it"
    assert not build(url.full, cache, tiny_config).changed
    store, before = ObjectStore(url), other.stat().st_ino
    changed = store.read("wavs/tone-0001.wav")
    changed = changed[:44] + changed[48:] + changed[44:48]
    store.upload(changed, "wavs/tone-0000.wav")
    store.remove(["wavs/tone-0002.wav"])
    report = build(f"{url.full}/metadata.csv", cache, tiny_config)
    assert (report.changed, dict(report.rejected)) == (True, {"missing audio": 1})
    assert wav.read_bytes() == changed, "the copy follows a changed object"
    assert other.stat().st_ino == before, "not fetched again"
    with pytest.raises(LockstepError, match=r"nothing-here: no objects, expected a corpus"):
        build(f"{url.full}/nothing-here", tmp_path / "none", tiny_config)
    assert not (tmp_path / "none").exists()


def folder_of(url):
    """The local folder of a corpus."""
    ((folder, found),) = with_folders(parse_data(f"lj={url.full}"))[1].items()
    assert found == url
    return folder


def test_object_names_cannot_leave_the_folder(url, monkeypatch):
    before = tree(folder_of(url))
    listed = ObjectStore.list
    names = ("a/../../b.txt", "/etc/passwd", "a//b", ".hidden", "a/.b", "a/")
    monkeypatch.setattr(ObjectStore, "list", lambda store: listed(store) | dict.fromkeys(names, ObjectInfo(1, 0.0)))
    assert tree(folder_of(url)) == before
