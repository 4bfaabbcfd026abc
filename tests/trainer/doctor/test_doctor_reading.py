"""Seeded faults of reading: slow pipelines; none without a fault."""

from dataclasses import replace

import numpy as np

from xtts.trainer.data.training_bucket import TrainingBucket
from xtts.trainer.doctor.speed import loading, storage

WITH_MELS = "build a cache with mels: run xtts-precompute build without --index-only"


def load(*seconds):
    return 0.0, np.array(seconds)


def test_loading_that_is_slower_than_the_steps(only, problems):
    times = load(0.55, 0.55, 0.56)
    what = "loading is slow: mean 553.3 ms, p95 559.0 ms a batch"
    assert only(loading(*times, step_seconds=None)).what == what
    assert only(loading(*times, step_seconds=0.1)).gain == "5.5 times the steps a second: one takes 100.0 ms"
    assert not problems(loading(*times, step_seconds=2.0))
    assert not problems(loading(*load(0.4), step_seconds=None))


def test_a_host_too_slow_for_audio_is_told_to_build_a_cache(only, problems):
    problem = only(loading(*load(0.5), step_seconds=0.1, from_audio=True))
    assert (problem.name, problem.remedy) == ("slow-audio", WITH_MELS)
    assert problem.what.startswith("the host cannot keep up: loading is slow")
    assert only(loading(*load(0.5), step_seconds=0.1)).name == "slow-loading"
    assert not problems(loading(*load(0.5), step_seconds=1.0, from_audio=True))


def test_storage_that_answers_too_slowly_for_the_steps(only, problems, workload, monkeypatch):
    buckets = workload.loops.loop.buckets
    assert next(storage(buckets, step_seconds=1.0)).value == np.median([bucket.read_seconds for bucket in buckets])
    buckets = [replace(bucket) for bucket in buckets]  # a bucket is measured once
    monkeypatch.setattr(TrainingBucket, "read_seconds", 0.15)
    problem = only(storage(buckets, step_seconds=1e-5))
    assert problem.name == "slow-storage"
    cache = workload.setup.cache
    assert problem.what.startswith(f"the storage of {cache} answers slowly: 150 ms for a read of 64 KiB, expected")
    assert problem.fix.startswith(f"copy the cache to a local disk with cp -r {cache}")
    assert not problems(storage(buckets, step_seconds=100.0)), "the steps hide it"
    monkeypatch.setattr(TrainingBucket, "read_seconds", 0.001)
    assert not problems(storage(buckets, step_seconds=1e-9)), "a local disk"
