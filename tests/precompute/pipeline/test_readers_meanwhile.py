"""A reader of a cache that is being rebuilt sees the old one or the new one, whole."""

import pytest
from builds import tree, update

from xtts.precompute.check.verify import check_cache
from xtts.precompute.view.cached_clips import CachedClips
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.cache.quick_check import quick_check
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import ReadLock, without_readers


@pytest.fixture
def no_blanks(tiny_config: Config) -> Config:
    """Settings with which every shard, the index and the tokenizer become new files."""
    return tiny_config.model_copy(update={"text": tiny_config.text.model_copy(update={"add_blank": False})})


def test_a_reader_keeps_its_files_until_it_has_done(workspace, tiny_config, no_blanks):
    cache = workspace / "cache"
    old, there = load_spec(cache), tree(cache).keys()
    lock = ReadLock(cache)
    report, said = update(workspace, no_blanks)
    assert report.changed
    assert tree(cache).keys() > there - {"cache.json"}
    assert load_spec(cache) == report.spec != old
    quick_check(cache, old)
    quick_check(cache, report.spec)
    assert check_cache(cache, threads=1) == []
    replaced = len(there) - 3  # all but cache.json and the lock files
    line = f"{replaced} old files kept: the cache is in use; a later build removes them"
    assert line in said.lines
    assert line in update(workspace, no_blanks)[1].lines
    lock.release()
    report, said = update(workspace, no_blanks)
    assert report.changed is False
    assert line not in said.lines
    assert not tree(cache).keys() & (there - {"cache.json", ".lock", ".readers"})
    with pytest.raises(LockstepError, match="missing"):
        quick_check(cache, old)


def test_a_clip_is_read_from_the_cache_that_was_opened(workspace, no_blanks):
    clips = CachedClips(workspace / "cache")
    update(workspace, no_blanks)
    for row in (row for row in clips.rows if row.is_kept):
        assert clips.read(row).clip_id == row.clip.id
    assert clips.rows == read_index(workspace / "cache" / clips.spec.index_file)


def test_what_is_verified_is_kept(workspace, monkeypatch):
    def read(path):
        with without_readers(workspace / "cache") as free:
            assert not free
        return read_index(path)

    monkeypatch.setattr("xtts.precompute.check.verify.read_index", read)
    assert check_cache(workspace / "cache", threads=1) == []
