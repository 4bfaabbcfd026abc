"""Corpora in an object store: the shards of the same corpus in a folder, and what changes between builds."""

import pytest
from builds import build

from xtts.precompute.corpus.corpus_entries import parse_data
from xtts.precompute.corpus.fetched_objects import FETCHED, fetched
from xtts.precompute.corpus.remote_corpus import is_plain, with_folders
from xtts.shared.cache.cache_spec import SPLITS, load_spec
from xtts.shared.errors import LockstepError
from xtts.shared.storage import failures
from xtts.shared.storage.object_store import ObjectStore


@pytest.fixture
def url(bucket, tiny_corpus):
    """The tiny corpus in a bucket."""
    place = bucket.child("LJSpeech-1.1")
    for path in sorted(path for path in tiny_corpus.rglob("*") if path.is_file()):
        ObjectStore(place).upload(path, path.relative_to(tiny_corpus).as_posix())
    return place


def test_the_shards_are_those_of_the_corpus_in_a_folder(url, tmp_path, tiny_cache, tiny_config):
    cache = tmp_path / "cache"
    report = build(url.whole, cache, tiny_config)
    assert report.spec.shards(*SPLITS) == load_spec(tiny_cache).shards(*SPLITS)
    folder = url.local_folder("corpora")
    wav = folder / "wavs" / "tone-0000.wav"
    assert not any(wav.read_bytes()), "an empty file of the object's size stands for it"
    assert not list((folder / FETCHED).iterdir())
    assert not build(url.whole, cache, tiny_config).changed
    store = ObjectStore(url)
    store.write("wavs/tone-0000.wav", store.read("wavs/tone-0001.wav"))
    store.remove(["wavs/tone-0002.wav"])
    report = build(f"{url.whole}/metadata.csv", cache, tiny_config)
    assert (report.changed, dict(report.rejected)) == (True, {"missing audio": 1})


def folder_of(url):
    """The local folder of a corpus."""
    ((folder, found),) = with_folders(parse_data(f"lj={url.whole}"))[1].items()
    assert found == url
    return folder


class NoAnswer:
    def open_input_file(self, path):
        raise OSError("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7")


def test_what_happens_to_an_object_during_a_build_is_said(url, monkeypatch):
    folder, store = folder_of(url), ObjectStore(url)
    with fetched(url, folder, "wavs/tone-0000.wav") as path:
        assert path.read_bytes() == store.read("wavs/tone-0000.wav")
    assert not path.exists()
    store.write("wavs/tone-0000.wav", store.read("wavs/tone-0001.wav"))
    with pytest.raises(LockstepError, match=rf"^{url}/wavs/tone-0000.wav: changed while the cache was being built"):
        fetched(url, folder, "wavs/tone-0000.wav").__enter__()
    store.remove(["wavs/tone-0000.wav"])
    with pytest.raises(LockstepError, match=r"tone-0000\.wav: gone since the cache began"):
        fetched(url, folder, "wavs/tone-0000.wav").__enter__()
    monkeypatch.setattr(failures, "PAUSES", ())
    monkeypatch.setattr(ObjectStore, "_opened", (NoAnswer(), "bucket"))
    with pytest.raises(LockstepError, match=rf"^{url}/wavs/tone-0001.wav: the store does not answer"):
        fetched(url, folder, "wavs/tone-0001.wav").__enter__()


def test_names_of_objects_do_not_leave_the_folder(url):
    assert is_plain("wavs/tone 0.wav")
    assert not any(map(is_plain, ("a/../../b.txt", "/etc/passwd", "a//b", ".objects.json", "a/.b")))
    ObjectStore(url).write(".objects.json", b"{}")
    assert len((folder_of(url) / ".objects.json").read_bytes()) > 100


def test_what_needs_a_folder_is_refused(url, tmp_path, tiny_config):
    with pytest.raises(LockstepError, match=rf"^--index-only: with the corpus {url}, expected a folder"):
        build(url.whole, tmp_path / "cache", tiny_config, index_only=True)
    with pytest.raises(LockstepError, match=r"^--engine ray: with the corpus"):
        build(url.whole, tmp_path / "cache", tiny_config, ray_address="auto")
    with pytest.raises(LockstepError, match=r"nothing-here: no objects, expected a corpus"):
        build(f"{url.whole}/nothing-here", tmp_path / "cache", tiny_config)
    assert not (tmp_path / "cache").exists()


def test_a_copied_list_follows_its_object(url, tiny_corpus):
    folder = folder_of(url)
    assert (folder / "metadata.csv").read_bytes() == (tiny_corpus / "metadata.csv").read_bytes()
    ObjectStore(url).write("metadata.csv", b"tone-0000|a|a\n")
    assert folder_of(url) == folder
    assert (folder / "metadata.csv").read_bytes() == b"tone-0000|a|a\n"
