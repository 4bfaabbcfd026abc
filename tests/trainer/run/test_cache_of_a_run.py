"""The cache of a run: held until its end, as test_readers_meanwhile.py has it; in an object store."""

import json
import shutil

import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.object_store import upload_cache
from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import without_readers
from xtts.trainer.doctor.settings import load_setup
from xtts.trainer.run.run_plan import make_plan
from xtts.trainer.run.setup import prepare
from xtts.trainer.stored.run_folder import RunFolder

OF_THE_CACHE = ["shapes.buckets=2", "split.validation_fraction=0.1", "training.batch_size=4"]


@pytest.mark.parametrize("begin", [
    lambda cache, out: make_plan(["tiny"], OF_THE_CACHE, {}, cache=cache, out=out, resume=None, init_from=None),
    lambda cache, _: load_setup(["tiny"], OF_THE_CACHE, {}, cache),
], ids=["run", "examination"])
def test_a_cache_is_held_until_a_run_or_an_examination_ends(tiny_cache, tmp_path, begin):
    cache = shutil.copytree(tiny_cache, tmp_path / "features")
    with begin(cache, tmp_path / "run").lock, without_readers(cache) as free:
        assert not free
    with without_readers(cache) as free:
        assert free


def test_a_run_uses_a_copy_and_is_resumed_elsewhere(bucket, machine, tiny_cache, micro, tmp_path):
    url, run = f"{bucket}/features", RunFolder(tmp_path / "run")
    upload_cache(tiny_cache, url)
    plan = make_plan(["tiny"], [*micro], {}, cache=url, out=run.path, resume=None, init_from=None)
    assert plan.cache != tiny_cache
    with run.exclusive():
        run.write_run_files(plan.config, plan.cache, plan.spec, named=plan.named_cache)
    assert json.loads(run.run_file.read_text())["cache"] == url
    machine("elsewhere")
    setup = prepare([], [], {}, cache=None, run=run)
    assert setup.cache != plan.cache
    assert setup.spec == load_spec(tiny_cache)
    with pytest.raises(LockstepError, match=rf"^{url}: built with shapes.buckets = "):
        make_plan(["tiny"], [*micro, "shapes.buckets=7"], {}, cache=url, out=None, resume=None, init_from=None)
