"""A run or an examination holds the cache that it began with; what that keeps there is in test_readers_meanwhile."""

import shutil

import pytest

from xtts.shared.system.folder_lock import without_readers
from xtts.trainer.doctor.settings import load_setup
from xtts.trainer.run.run_plan import make_plan

OF_THE_CACHE = ["shapes.buckets=2", "split.validation_fraction=0.1", "training.batch_size=4"]


@pytest.mark.parametrize("prepare", [
    lambda cache, out: make_plan(["tiny"], OF_THE_CACHE, {}, cache=cache, out=out, resume=None, init_from=None),
    lambda cache, _: load_setup(["tiny"], OF_THE_CACHE, {}, cache),
], ids=["run", "examination"])
def test_a_cache_is_held_until_a_run_or_an_examination_ends(tiny_cache, tmp_path, prepare):
    cache = shutil.copytree(tiny_cache, tmp_path / "features")
    with prepare(cache, tmp_path / "run").lock, without_readers(cache) as free:
        assert not free
    with without_readers(cache) as free:
        assert free
