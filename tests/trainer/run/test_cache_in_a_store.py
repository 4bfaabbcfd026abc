"""The cache of a run in an object store: copied, named in messages, recorded, and copied again elsewhere."""

import json

import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.object_store import upload_cache
from xtts.shared.errors import LockstepError
from xtts.trainer.run.run_plan import make_plan
from xtts.trainer.run.setup import prepare
from xtts.trainer.stored.run_folder import RunFolder


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
