"""Caches built in an object store: the bytes of a local build, through kills, other builders and readers."""

import shutil

import pytest
import soundfile
from builds import Listener, build, command, tree

from xtts.precompute.check.verify import check_cache
from xtts.precompute.library import build_cache as library_build
from xtts.precompute.pipeline import remote_cache
from xtts.precompute.view.cached_clips import CachedClips
from xtts.shared.cache.cache_copy import CacheCopy, local_cache
from xtts.shared.cache.cache_spec import SPLITS, load_spec
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import ObjectStore


def visible(cache):
    """Name to content of the files of a local cache."""
    return {name: data for name, data in tree(cache).items() if not name.startswith(".")}


def objects_of(url):
    """Name to content of the objects of a cache; Arrow leaves empty objects for folders."""
    store = ObjectStore(url)
    return {name: store.read(name) for name in store.list()}


@pytest.fixture
def url(bucket):
    return bucket.child("caches/tones")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine(name)` makes this another machine: one with another user's folder."""

    def change(name):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    change("first")
    return change


def with_another_clip(corpus, folder):
    """A copy of a corpus with one clip more."""
    shutil.copytree(corpus, folder)
    samples, rate = soundfile.read(folder / "wavs" / "tone-0000.wav")
    soundfile.write(folder / "wavs" / "new.wav", samples[::-1], rate, subtype="PCM_16")
    with (folder / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write("new|a new clip|a new clip\n")
    return folder


def test_a_remote_build_is_the_local_one_and_sends_nothing_twice(url, machine, tiny_corpus, tiny_cache, tiny_config):
    assert build(tiny_corpus, url, tiny_config).changed
    assert objects_of(url) == visible(tiny_cache)
    before = ObjectStore(url).list()
    assert not build(tiny_corpus, url, tiny_config).changed
    machine("second")
    report = build(tiny_corpus, url, tiny_config)
    assert (report.changed, report.written_shards) == (False, 0)
    assert ObjectStore(url).list() == before
    assert check_cache(url, threads=1) == []


class Killed(BaseException):
    """What ends a build as kill -9 does: none of it continues."""


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_killed_build_is_finished_on_this_machine_or_another(
    url, machine, tiny_corpus, tiny_cache, tiny_config, name, monkeypatch
):
    upload, sent = ObjectStore.upload, list[str]()

    def upload_two(self, source, name):
        if len(sent) == 2:
            raise Killed
        sent.append(name)
        upload(self, source, name)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "upload", upload_two)
        with pytest.raises(Killed):
            build(tiny_corpus, url, tiny_config)
    there = ObjectStore(url).list()
    assert set(there) == set(sent)
    with pytest.raises(LockstepError, match=r"cache.json: no finished cache, although it holds 2 objects"):
        CacheCopy(url).open()
    machine(name)
    report = build(tiny_corpus, url, tiny_config)
    assert report.kept_shards >= 2 if name == "first" else report.kept_shards == 0
    assert objects_of(url) == visible(tiny_cache)
    assert there.items() <= ObjectStore(url).list().items()  # nor sent again


def test_readers_see_the_old_cache_or_the_new_one(url, machine, tmp_path, tiny_corpus, tiny_config, monkeypatch):
    build(tiny_corpus, url, tiny_config)
    reader = CacheCopy(url, stage=str(tmp_path / "stage"))
    old = reader.open()
    changed = with_another_clip(tiny_corpus, tmp_path / "changed")
    seen = list[str]()  # before the commit
    watch = Listener(lambda _: seen.append(CacheCopy(url, stage=str(tmp_path / "other")).open().identity))
    assert build(changed, url, tiny_config, progress=watch).changed
    assert set(seen) == {old.identity}
    reader.fetch(old.shards(*SPLITS))  # kept for a day
    assert CacheCopy(url, stage=str(tmp_path / "other")).open().identity != old.identity
    replaced = old.files - set(load_spec(url.local_folder("builds")).files)
    assert replaced <= set(ObjectStore(url).list())
    monkeypatch.setattr(remote_cache, "KEPT_SECONDS", 0.0)
    build(tiny_corpus, url, tiny_config)  # those that it brings back were never removed
    new = load_spec(url.local_folder("builds")).files - old.files
    assert not new
    build(tiny_corpus, url, tiny_config)
    assert set(ObjectStore(url).list()) == {*old.files, "cache.json"}
    assert check_cache(url, threads=1) == []


def test_two_builders_at_once_leave_a_sound_cache(url, machine, tmp_path, tiny_corpus, tiny_config, tiny_cache):
    changed, done = with_another_clip(tiny_corpus, tmp_path / "changed"), list[bool]()

    def between(stage):
        if stage == "features":
            machine("second")
            done.append(build(changed, url, tiny_config).changed)
            machine("first")

    build(tiny_corpus, url, tiny_config, progress=Listener(between))
    assert done == [True]
    assert objects_of(url)["cache.json"] == (tiny_cache / "cache.json").read_bytes()
    assert check_cache(url, threads=1) == []


def upload(cache, url):
    """Copy a local cache."""
    for name in visible(cache):
        ObjectStore(url).upload(cache / name, name)


def test_a_damaged_object_is_found(url, tiny_cache):
    upload(tiny_cache, url)
    shard = load_spec(tiny_cache).buckets[0].train[0]
    data = bytearray((tiny_cache / shard.file).read_bytes())
    data[len(data) // 2] ^= 1
    ObjectStore(url).upload(bytes(data), shard.file)
    findings = check_cache(url, threads=1)
    assert [finding.file for finding in findings] == [shard.file]
    with (
        pytest.raises(LockstepError, match=rf"^{url}/{shard.file}: {shard.bytes} bytes of SHA-256 .*, twice"),
        local_cache(url, lambda spec: spec.shards(*SPLITS)),
    ):
        pass


def test_views_of_a_remote_cache_copy_what_they_show(url, machine, tiny_cache):
    upload(tiny_cache, url)
    shown = command("stats", "--cache", url.full)
    assert (shown.exit_code, shown.output) == (0, command("stats", "--cache", tiny_cache).output)
    clips = CachedClips(url)
    row = clips.row("tone-0003")
    assert (clips.read(row).mel == CachedClips(tiny_cache).read(row).mel).all()
    assert len(list(clips.cache.rglob("*.tfrecord"))) == 1


def test_what_cannot_be_done_is_said(url, machine, tiny_corpus):
    with pytest.raises(LockstepError, match=r"^--engine ray: --cache s3://.*, expected a folder"):
        library_build(tiny_corpus, url.full, engine="ray")
    with pytest.raises(LockstepError, match=rf"^{url}/cache.json: no objects, expected a cache; run xtts-pre"):
        check_cache(url, threads=1)
