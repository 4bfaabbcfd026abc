"""A run keeps the cache that it began with, whatever is built there meanwhile."""

import shutil
from pathlib import Path

import pytest
from cache_files import build_cache

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.quick_check import full_check
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.settings import load_setup
from xtts.trainer.run.run_plan import make_plan

OF_THE_CACHE = ["shapes.buckets=2", "split.validation_fraction=0.1", "training.batch_size=4"]


@pytest.fixture
def cache(tiny_cache: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_cache, tmp_path / "features"))


def build_other(corpus: Path, cache: Path, config: Config) -> None:
    """Settings with which every shard, the index and the tokenizer become new files."""
    no_blanks = config.model_copy(update={"text": config.text.model_copy(update={"add_blank": False})})
    build_cache(corpus, cache, no_blanks)


def run_of(cache, folder):
    plan = make_plan(["tiny"], OF_THE_CACHE, {}, cache=cache, out=folder, resume=None, init_from=None)
    return plan.lock, plan.spec


def examination_of(cache, _):
    setup = load_setup(["tiny"], OF_THE_CACHE, {}, cache)
    return setup.lock, setup.spec


@pytest.mark.parametrize("holder", [run_of, examination_of])
def test_the_files_of_a_run_or_an_examination_stay_until_it_ends(cache, tiny_corpus, tiny_config, tmp_path, holder):
    lock, spec = holder(cache, tmp_path / "run")
    build_other(tiny_corpus, cache, tiny_config)
    assert load_spec(cache).identity != spec.identity
    full_check(cache, spec)
    with lock:
        pass
    build_other(tiny_corpus, cache, tiny_config)
    with pytest.raises(LockstepError, match="missing"):
        full_check(cache, spec)
