"""`from xtts.precompute import build_cache, verify_cache`: what a Python program gives, and what it gets back."""

import shutil

from xtts.precompute import build_cache, verify_cache
from xtts.shared.cache.cache_spec import load_spec


def test_names_paths_and_settings_make_the_cache_of_the_command(tiny_corpus, tiny_cache, tmp_path):
    settings = {"shapes.buckets": 2, "split.validation_fraction": 0.1}
    report = build_cache(str(tiny_corpus), str(tmp_path / "cache"), config="tiny", settings=settings, workers=0)
    assert report.changed
    assert report.spec.identity == load_spec(tiny_cache).identity
    assert not build_cache(tiny_corpus, tmp_path / "cache", settings=settings, workers=0).changed


def test_a_sound_cache_has_no_findings_a_broken_one_is_repaired(tiny_corpus, tiny_cache, tmp_path):
    assert verify_cache(tiny_cache, against=tiny_corpus, workers=0) == []
    broken = shutil.copytree(tiny_cache, tmp_path / "broken")
    shard = load_spec(broken).buckets[0].train[0].file
    (broken / shard).write_bytes(b"")
    assert {finding.file for finding in verify_cache(str(broken), workers=0)} == {shard}
    assert verify_cache(broken, against=tiny_corpus, repair=True, workers=0) == []
    assert (broken / shard).read_bytes() == (tiny_cache / shard).read_bytes()
