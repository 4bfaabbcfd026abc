"""Builds into an object store: the bytes of a local build, through interruptions, other builders and readers."""

import pytest
from builds import command, tree

from xtts.precompute.library import build_cache, verify_cache
from xtts.shared.cache import object_store
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.object_store import ObjectStore, local_build, local_cache

SETTINGS = {"split.validation_fraction": 0.1}


@pytest.fixture
def build(bucket, machine, tiny_corpus):
    """`build(**settings)` builds the tiny corpus into the store."""
    return lambda **settings: build_cache(
        tiny_corpus, f"{bucket}/features", settings=SETTINGS | settings, workers=0, limit=12
    )


def test_a_build_is_stored_and_nothing_is_sent_or_written_twice(build, bucket, machine):
    assert build().changed
    url, store = f"{bucket}/features", ObjectStore(f"{bucket}/features")
    folder, stored = local_build(url, fresh=False), store.list()
    assert set(stored) == {name for name in tree(folder) if not name.startswith(".")}
    assert not build().changed
    machine("second")
    report = build()
    assert (report.changed, report.written_shards, store.list()) == (False, 0, stored)
    assert verify_cache(url, workers=1) == []
    shown = command("stats", "--cache", url)
    assert (shown.exit_code, shown.stdout) == (0, command("stats", "--cache", folder).stdout)


def test_an_interrupted_upload_leaves_the_old_cache_and_is_continued(build, bucket, machine, monkeypatch):
    old, sent, upload = build().spec, [], ObjectStore.upload

    def upload_one(self, source, name):
        if sent:
            raise KeyboardInterrupt
        sent.append(name)
        upload(self, source, name)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "upload", upload_one)
        with pytest.raises(KeyboardInterrupt):
            build(**{"shapes.buckets": 3})
    machine("reader")
    assert load_spec(local_cache(f"{bucket}/features")) == old
    machine("first")
    report = build(**{"shapes.buckets": 3})
    assert (report.changed, report.written_shards) == (False, 0)
    assert load_spec(local_cache(f"{bucket}/features")) == report.spec


def test_a_newer_cache_of_another_machine_is_continued(build, bucket, machine, monkeypatch):
    url, first = f"{bucket}/features", build().spec
    machine("second")
    second = build(**{"shapes.buckets": 1}).spec
    machine("first")
    report = build(**{"shapes.buckets": 1})
    assert (report.spec, report.written_shards) == (second, 0)
    assert first.files <= set(ObjectStore(url).list())
    monkeypatch.setattr(object_store, "KEPT_SECONDS", 0.0)
    third = build(**{"shapes.buckets": 3}).spec
    kept = {"cache.json", *second.files, *third.files}
    assert set(ObjectStore(url).list()) == kept, "those of the cache before stay for its readers"
