"""Faults of a configuration against its cache and corpus, each found and named; none without a fault."""

import numpy as np
import pytest
from cache_files import build_cache, index_bytes

from xtts.shared.cache.stats import corpus_stats
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.doctor import settings
from xtts.trainer.doctor.settings import load_setup


def test_padding_names_the_bucket_count_that_fixes_it(kept_row, tmp_path, setup, only):
    frames = np.random.default_rng(0).integers(100, 870, 2000).tolist()
    index = tmp_path / "index.parquet"
    index.write_bytes(index_bytes([kept_row(str(number), 9, length) for number, length in enumerate(frames)]))
    stats = corpus_stats(index)
    statistics = setup.spec.statistics.model_copy(update={"fill": stats.fill[1]})
    wasteful = setup.spec.model_copy(update={"buckets": setup.spec.buckets[:1], "statistics": statistics})
    problem = only(settings.padding(stats, wasteful))
    buckets = min(n for n, fill in stats.fill.items() if fill >= 0.97 * stats.fill[12])
    assert problem.remedy == f"set shapes.buckets to {buckets}, then run xtts-precompute build again"
    assert problem.gain.startswith(f"{stats.fill[buckets] / stats.fill[1]:.2f} times the useful frames")


def test_settings_that_disagree_with_the_cache_are_unusable_as_in_training(tiny_cache, micro):
    with pytest.raises(LockstepError, match=r"built with shapes.buckets = 2, expected 5; run xtts-precompute build"):
        load_setup(["tiny"], [*micro, "shapes.buckets=5"], {}, tiny_cache)


def test_unpadded_clips_are_unusable(tiny_corpus, tmp_path):
    flags = {"shapes.pad_to_fixed_length": False, "shapes.buckets": 1}
    build_cache(tiny_corpus, tmp_path / "features", load_config("tiny", flags=flags))
    with pytest.raises(LockstepError, match=r"expected shapes\.pad_to_fixed_length: true; run xtts-"):
        load_setup(["tiny"], [], flags, tmp_path / "features")
