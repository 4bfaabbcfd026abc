"""Faults of a configuration against its cache and corpus, each found and named; none without a fault."""

import csv
from pathlib import Path

import numpy as np
import pytest
from cache_files import build_cache, index_bytes

from xtts.shared.cache.stats import corpus_stats, read_lengths
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.doctor import settings
from xtts.trainer.doctor.settings import load_setup

LENGTHS = Path(__file__).parents[3] / "benchmarks" / "setup" / "ljspeech_lengths.csv"
"""(mel_frames, characters) of every fiftieth clip of LJSpeech."""


@pytest.fixture
def clips_of(kept_row, tmp_path):
    def lengths(frames):
        rows = [kept_row(str(number), 9, length) for number, length in enumerate(frames)]
        (tmp_path / "index.parquet").write_bytes(index_bytes(rows))
        return read_lengths(tmp_path / "index.parquet")

    return lengths


def test_a_cap_of_800_frames_on_ljspeechs_lengths(clips_of, configured, only, problems):
    with LENGTHS.open(encoding="utf-8", newline="") as file:
        clips = clips_of(int(line["mel_frames"]) for line in csv.DictReader(file))
    problem = only(settings.caps(clips, configured("shapes.max_mel_frames=800")))
    assert problem.what == "shapes.max_mel_frames 800 rejects 30 of 262 clips (11.5%)"
    assert problem.remedy == "set shapes.max_mel_frames to 869; then run xtts-precompute build again"
    assert problem.gain == "30 more clips to train on, 0.1 hours"
    assert not problems(settings.caps(clips, configured("shapes.max_mel_frames=869")))


def test_padding_names_the_bucket_count_that_fixes_it(clips_of, setup, only):
    clips = clips_of([int(n) for n in np.random.default_rng(0).integers(100, 870, 2000)])
    fills = corpus_stats(clips).fill
    statistics = setup.spec.statistics.model_copy(update={"fill": fills[1]})
    wasteful = setup.spec.model_copy(update={"buckets": setup.spec.buckets[:1], "statistics": statistics})
    problem = only(settings.padding(clips, wasteful))
    assert problem.setting == "shapes.buckets"
    assert fills[problem.value] >= 0.97 * fills[12] > fills[1]
    assert problem.gain.startswith(f"{fills[problem.value] / fills[1]:.2f} times the useful frames")


def test_buckets_that_disagree_with_the_cache(setup, configured, only):
    config = configured("shapes.buckets=5", "shapes.max_reject_fraction=0.9")  # which decides nothing of a cache
    problem = only(settings.disagreements(config, setup.spec, setup.cache))
    assert problem.what == "shapes.buckets is 5, the cache was built with 2"
    command = f"xtts-precompute build --cache {setup.cache} --data <its corpus> --config <this configuration>"
    assert problem.remedy == f"set shapes.buckets to 2; or run {command}"


def test_unpadded_clips_are_unusable(tiny_corpus, tmp_path, micro):
    config = load_config("tiny", flags={"shapes.pad_to_fixed_length": False, "shapes.buckets": 1})
    build_cache(tiny_corpus, tmp_path / "features", config)
    with pytest.raises(LockstepError, match=r"expected shapes\.pad_to_fixed_length: true; run xtts-"):
        load_setup(["tiny"], micro, {}, tmp_path / "features")
