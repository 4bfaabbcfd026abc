"""Faults of a configuration against its cache and corpus, each found and named; none where there is none."""

import csv
from pathlib import Path

import numpy as np
import pytest

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.stats import corpus_stats, lengths_of
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.data.batch_sizes import batch_sizes
from xtts.trainer.doctor.checks import settings
from xtts.trainer.doctor.subject import load_subject

LENGTHS = Path(__file__).parents[4] / "benchmarks" / "setup" / "ljspeech_lengths.csv"
"""(mel_frames, characters) of every fiftieth clip of LJSpeech."""


@pytest.fixture
def clips_of(kept_row):
    return lambda frames: lengths_of([kept_row(str(number), 9, length) for number, length in enumerate(frames)])


def test_a_cap_of_800_frames_on_ljspeechs_lengths(clips_of, configured, only):
    with LENGTHS.open(encoding="utf-8", newline="") as file:
        clips = clips_of(int(line["mel_frames"]) for line in csv.DictReader(file))
    finding = only(settings.caps(clips, configured("shapes.max_mel_frames=800")))
    assert finding.what == "shapes.max_mel_frames 800 rejects 30 of 262 clips (11.5%)"
    assert finding.remedy == "set shapes.max_mel_frames to 869; then run xtts-precompute build again"
    assert finding.gain == "30 more clips to train on, 0.1 hours"
    assert not settings.caps(clips, configured("shapes.max_mel_frames=869"))[1]


def test_padding_names_the_bucket_count_that_fixes_it(clips_of, subject, only):
    clips = clips_of([int(n) for n in np.random.default_rng(0).integers(100, 870, 2000)])
    fills = corpus_stats(clips).padding_efficiency
    statistics = subject.spec.statistics.model_copy(update={"fill": fills[1]})
    wasteful = subject.spec.model_copy(update={"buckets": subject.spec.buckets[:1], "statistics": statistics})
    finding = only(settings.padding(clips, wasteful))
    assert finding.setting == "shapes.buckets"
    assert fills[finding.value] >= 0.97 * fills[12] > fills[1]
    assert finding.gain.startswith(f"{fills[finding.value] / fills[1]:.2f} times the useful frames")


def test_a_batch_size_of_one(subject, configured, only):
    config = configured("training.batch_size=1")
    sizes = batch_sizes(subject.spec, config.training)
    finding = only(settings.batches(config, subject.spec, sizes, 0.05, None))
    assert finding.what == "training.batch_size is 1: a step works on a single clip"
    assert finding.setting == "training.batch_size"
    assert finding.value > 1
    assert finding.gain.startswith("up to 20 times the frames a second")
    assert only(settings.batches(config, subject.spec, sizes, None, 3)).value == 3
    assert not settings.batches(config, subject.spec, sizes, None, 1)[1]


def blank_advice(config, spec, most):
    (finding,) = settings.batches(config, spec, batch_sizes(spec, config.training), None, most)[1]
    assert "blank clips in validation batches take" in finding.what
    return finding


def test_a_batch_without_blanks_is_one_that_the_trainer_takes(configured, with_clips, advised_config):
    spec, micro = with_clips({400: (40, 24)}), "training.gradient_accumulation_steps=4"
    divided = configured("training.batch_size=20", micro, "training.validate_every=1")
    assert advised_config(divided, spec, [blank_advice(divided, spec, 100)]).training.batch_size == 24
    calm = configured("training.batch_size=20", micro, "training.validate_every=1000")
    assert not settings.batches(calm, spec, {0: 20}, None, 100)[1]
    # A quarter more than 36 would be more than all 40 clips.
    spec, large = with_clips({400: (40, 41)}), configured("training.batch_size=36", "training.validate_every=1")
    assert advised_config(large, spec, [blank_advice(large, spec, 100)]).training.validate_every == 4


def test_a_batch_without_blanks_is_no_larger_than_what_fits(configured, with_clips):
    config, spec = configured("training.batch_size=8", "training.validate_every=1"), with_clips({400: (40, 10)})
    assert blank_advice(config, spec, 100).value == 10
    for most in (9, 3, 0, None):
        finding = blank_advice(config, spec, most)
        assert finding.setting == "training.validate_every" or finding.value <= (8 if most is None else most)


def test_buckets_that_disagree_with_the_cache(subject, configured, only):
    config = configured("shapes.buckets=5", "shapes.max_reject_fraction=0.9")  # which decides nothing of a cache
    finding = only(settings.disagreements(config, subject.spec, subject.cache))
    assert finding.what == "shapes.buckets is 5, the cache was built with 2"
    command = f"xtts-precompute build --cache {subject.cache} --data <its corpus> --config <this configuration>"
    assert finding.remedy == f"set shapes.buckets to 2; or run {command}"


@pytest.mark.parametrize(
    ("changes", "where", "found"),
    [
        ([], {}, []),
        ([], {"free_memory": 600 << 20, "gpu": True}, []),
        (["training.constant_frames_per_batch=false"], {}, ["training.constant_frames_per_batch"]),
        (["data.prefetch_to_device=false"], {"gpu": True}, ["data.prefetch_to_device"]),
        (["data.prefetch_to_device=false"], {}, []),
    ],
)
def test_settings_of_the_input_pipeline(with_clips, configured, changes, where, found):
    config, spec = configured(*changes), with_clips({100: (40, 2), 400: (40, 2)})
    sizes = batch_sizes(spec, config.training)
    findings = settings.reading(config, spec, sizes, **{"free_memory": 8 << 30, "gpu": False, **where})[1]
    assert [finding.setting for finding in findings] == found


def test_blocks_are_shuffled_in_memory_as_far_as_there_are_clips(configured, with_clips, only):
    def read(mebibytes):
        config, spec = configured("data.shuffle_memory_mb=512"), with_clips({400: (40, 2)}, bytes=mebibytes << 20)
        return settings.reading(config, spec, batch_sizes(spec, config.training), free_memory=600 << 20, gpu=False)

    finding = only(read(300))
    assert finding.what == "shuffled blocks take 85% of the free memory"
    assert finding.remedy == "set data.shuffle_memory_mb to 150"
    assert not read(50)[1]


def test_unpadded_clips_are_unusable(tiny_corpus, tmp_path, micro):
    config = load_config("tiny", flags={"shapes.pad_to_fixed_length": False, "shapes.buckets": 1})
    build_cache(tiny_corpus, tmp_path / "features", config, workers=0, progress=NullProgress())
    with pytest.raises(LockstepError, match=r"expected shapes\.pad_to_fixed_length: true; run xtts-"):
        load_subject(["tiny"], micro, {}, tmp_path / "features")
