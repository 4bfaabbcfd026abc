"""Runs on a cache in an object store, begun on one machine and resumed on another."""

import json

import pytest
from cache_files import build_cache
from held_runs import train
from rich.console import Console

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.shared.storage.object_store import ObjectStore
from xtts.shared.storage.urls import path_or_url
from xtts.trainer.doctor.settings import load_setup
from xtts.trainer.run.run_plan import make_plan

ONE_SHAPE = "shapes.buckets=1"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def url(object_server, tiny_corpus):
    """A cache of one shape, built in a bucket."""
    place = path_or_url(f"{object_server.bucket()}/features")
    config = load_config("tiny", assignments=[ONE_SHAPE, "split.validation_fraction=0.1"])
    build_cache(tiny_corpus, place, config)
    return place


def rows_of(folder):
    """(split, step, loss) of every line, and of each step the last."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return {(line["split"], line["step"]): line["loss"] for line in lines}


def run(micro, folder, cache=None, *more, resume=None):
    plan = make_plan(["tiny"], [*micro, ONE_SHAPE, *more], {}, cache=cache, out=folder, resume=resume, init_from=None)
    assert train(plan, Console(quiet=True))
    return rows_of(folder)


def test_a_run_is_resumed_on_another_machine(micro, url, tmp_path):
    folder, here = tmp_path / "remote", f"data.stage={tmp_path / 'stage'}"
    expected = run(micro, folder, url, here)
    assert len(expected) == 12 + 2
    assert json.loads((folder / "run.json").read_text())["cache"] == url.full
    elsewhere = f"data.stage={tmp_path / 'elsewhere'}"
    assert run(micro, folder, None, elsewhere, resume=str(folder / "checkpoints" / "step-8")) == expected
    staged = {path.name for path in (tmp_path / "elsewhere").rglob("*.tfrecord")}
    assert staged == {name.rpartition("/")[2] for name in ObjectStore(url).list() if name.endswith(".tfrecord")}


def test_other_settings_are_refused_by_the_name_of_the_store(micro, url, tmp_path):
    stage = f"data.stage={tmp_path}"
    with pytest.raises(LockstepError, match=rf"^{url}: built with shapes.buckets = 1"):
        make_plan(["tiny"], [*micro, stage, "shapes.buckets=3"], {}, cache=url, out=None, resume=None, init_from=None)
    assert not list(tmp_path.rglob("*.tfrecord")), "nothing is copied before it is known that it fits"


def test_the_doctor_examines_a_whole_copy(micro, url, tmp_path):
    setup = load_setup(["tiny"], [*micro, ONE_SHAPE, f"data.stage={tmp_path}"], {}, url.full)
    assert setup.spec.identity == load_spec(setup.cache).identity
    assert all((setup.cache / shard.file).exists() for shard in setup.spec.shards("train", "validation"))
