"""Whoever reads a cache while it is built again sees the old one or the new one, whole."""

import random
import subprocess
import sys
import time

import pytest
from builds import start, tree, update
from fuzzing import fresh_seed

from xtts.precompute.check.verify import check_cache
from xtts.precompute.view.cached_clips import CachedClips
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.cache.quick_check import full_check
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import ReadLock, without_readers

READER = """
import sys
from pathlib import Path
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.cache.quick_check import full_check
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.text.tokenizer import load_tokenizer

cache, stop, seen, reads = Path(sys.argv[1]), Path(sys.argv[2]), set(), 0
while not stop.exists():
    with ReadLock(cache):
        spec = load_spec(cache)
        for _ in range(2):  # the files of the cache that it began with stay
            full_check(cache, spec)
            assert len(read_index(cache / spec.index_file)) == spec.index_rows
            assert load_tokenizer(cache / spec.tokenizer_file).size == spec.vocabulary
    seen.add(spec.identity)
    reads += 1
print(reads, len(seen))
"""


@pytest.fixture
def no_blanks(tiny_config: Config) -> Config:
    """Other settings, for which every shard, the index and the tokenizer are other files."""
    return tiny_config.model_copy(update={"text": tiny_config.text.model_copy(update={"add_blank": False})})


def test_a_reader_keeps_its_files_until_it_has_done(workspace, tiny_config, no_blanks):
    cache = workspace / "cache"
    old, there = load_spec(cache), tree(cache).keys()
    lock = ReadLock(cache)
    report, said = update(workspace, no_blanks)
    assert report.changed
    assert tree(cache).keys() > there - {"cache.json"}
    assert load_spec(cache) == report.spec != old
    full_check(cache, old)
    full_check(cache, report.spec)
    assert check_cache(cache, threads=1) == []
    replaced = len(there) - 3  # all but cache.json and the lock files
    line = f"{replaced} replaced files stay while another process reads the cache; a later build goes on"
    assert line in said.lines
    assert line in update(workspace, no_blanks)[1].lines
    lock.release()
    report, said = update(workspace, no_blanks)
    assert report.changed is False
    assert line not in said.lines
    assert not tree(cache).keys() & (there - {"cache.json", ".lock", ".readers"})
    with pytest.raises(LockstepError, match="missing"):
        full_check(cache, old)


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


@pytest.mark.long
def test_a_reader_in_a_loop_while_builders_are_killed(workspace, tiny_config, no_blanks):
    generator, cache, there = random.Random(fresh_seed()), workspace / "cache", tree(workspace / "cache").keys()
    read = [sys.executable, "-c", READER, str(cache), str(workspace / "stop")]
    watching, kills = subprocess.Popen(read, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), 0
    settings = {"shapes.buckets": 2, "split.validation_fraction": 0.1, "text.tokenizer": "characters"}
    for number in range(24):
        settings["text.add_blank"] = number // 2 % 2 == 0
        process = start(workspace / "corpus", cache, settings, "--workers=1")
        while process.poll() is None and not (cache / ".building").exists():
            time.sleep(0.001)
        try:
            process.communicate(timeout=None if number % 6 == 5 else generator.uniform(0.0, 0.8))  # each is committed
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
    (workspace / "stop").touch()
    output, errors = watching.communicate()
    assert watching.returncode == 0, errors
    assert kills
    assert int(output.split()[0]) > 5
    assert output.split()[1] == "2"
    update(workspace, tiny_config)
    assert check_cache(cache, threads=1) == []
    assert tree(cache).keys() == there
