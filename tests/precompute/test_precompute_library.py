"""`from xtts.precompute import build_cache, verify_cache`: a Python program's arguments and results."""

from xtts.precompute import build_cache, verify_cache
from xtts.shared.cache.cache_spec import load_spec


def test_paths_and_settings_make_the_cache_of_the_command_and_repair_it(tiny_corpus, tiny_cache, tmp_path):
    settings, cache = {"shapes.buckets": 2, "split.validation_fraction": 0.1}, tmp_path / "cache"
    report = build_cache(str(tiny_corpus), str(cache), config="tiny", settings=settings, workers=0)
    assert (report.changed, report.spec.identity) == (True, load_spec(tiny_cache).identity)
    assert not build_cache(tiny_corpus, cache, settings=settings, workers=0).changed
    shard = report.spec.buckets[0].train[0].file
    (cache / shard).write_bytes(b"")
    assert {finding.file for finding in verify_cache(str(cache), workers=0)} == {shard}
    assert verify_cache(cache, against=tiny_corpus, repair=True, workers=0) == []
    assert (cache / shard).read_bytes() == (tiny_cache / shard).read_bytes()
