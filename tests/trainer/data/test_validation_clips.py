"""The clips that validation reads, and that all of its readers agree on them."""

import random
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
from one_bucket import one_bucket

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.config_files import load_config
from xtts.trainer.data.batch_sizes import batch_sizes
from xtts.trainer.data.dataset import validation_batches
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.data.validation_clips import validation_records
from xtts.trainer.doctor.checks.settings import blank_share
from xtts.trainer.evaluation.held_out_clips import shard_clips
from xtts.trainer.reporting.spoken_samples import fixed_sentences


def records_read(stored, most):
    """Of so many records in each validation shard of each bucket."""
    shards = ([SimpleNamespace(records=records) for records in bucket] for bucket in stored)
    return validation_records(SimpleNamespace(buckets=[SimpleNamespace(validation=bucket) for bucket in shards]), most)


def million_clips():
    """50,000 held-out clips of a million: for each shard of 8 buckets the sorted digests of its clips."""
    draw = random.Random(0)
    return [
        [sorted(draw.random() for _ in range(draw.randint(100, 320))) for _ in range(shards)]
        for shards in (80, 50, 40, 30, 20, 10, 5, 3)
    ]


def chosen(digests, most):
    counts = records_read([[len(shard) for shard in bucket] for bucket in digests], most)
    pairs = zip(chain(*digests), chain(*counts), strict=True)
    return {digest for shard, count in pairs for digest in shard[:count]}


def clips_read(cache, bucket):
    return [
        clip
        for shard, records in zip(bucket.stored.validation, bucket.validation_records, strict=True)
        for clip in shard_clips(cache, bucket.spec, bucket.stored, shard)[:records]
    ]


def test_of_a_million_clips_as_many_are_read_as_asked_for():
    digests = million_clips()
    stored = [[len(shard) for shard in bucket] for bucket in digests]
    assert sum(map(sum, stored)) == pytest.approx(50_000, rel=0.05)
    for most in (1, 7, 1000, 2000, 40_000):
        assert sum(map(sum, records_read(stored, most))) == most == len(chosen(digests, most))
    share = 1000 / sum(map(sum, stored))
    for counts, records in zip(records_read(stored, 1000), stored, strict=True):
        assert sum(counts) == pytest.approx(share * sum(records), abs=len(records))
        assert all(abs(count - share * whole) < 1 for count, whole in zip(counts, records, strict=True))


def test_a_small_split_is_read_whole():
    stored = [[3, 4], [], [1]]
    assert [records_read(stored, most) for most in (None, 8, 9)] == [stored] * 3
    assert records_read(stored, 4) == [[2, 2], [], [0]]


def test_the_choice_hardly_changes_as_clips_come_and_go():
    """A clip is there as long as it is in the cache, but for a few at the edges of shards."""
    draw, digests = random.Random(1), million_clips()
    later = [[sorted(d for d in shard if draw.random() > 0.002) for shard in bucket] for bucket in digests]
    later = [[sorted([*shard, draw.random()][: len(shard) + (draw.random() < 0.4)]) for shard in b] for b in later]
    left = chosen(digests, 1000) - chosen(later, 1000)
    assert 0 < len(left) < 100
    once = [[list(shard) for shard in bucket] for bucket in digests]
    once[3][5].append(0.999_999)
    assert len(chosen(digests, 1000) - chosen(once, 1000)) < 3


def test_every_reader_takes_the_same_clips(tiny_cache):
    spec = load_spec(tiny_cache)
    held_out = sum(bucket.clips("validation") for bucket in spec.buckets)
    settings = ["shapes.buckets=2", "training.batch_size=3", f"training.validation_clips={held_out // 2}"]
    buckets = training_buckets(tiny_cache, spec, load_config("tiny", assignments=settings))
    assert sum(sum(bucket.validation_records) for bucket in buckets) == held_out // 2
    for bucket in buckets:
        assert bucket.validates == any(bucket.validation_records)
        read = clips_read(tiny_cache, bucket)
        if bucket.validates:
            lengths = np.concatenate([batch.mel_length.numpy() for batch in validation_batches(bucket)])
            assert len(lengths) == -(-len(read) // bucket.batch_size) * bucket.batch_size
            assert lengths[: len(read)].tolist() == [len(clip.mel) for clip in read]
            assert not lengths[len(read) :].any()
    number, sentences = fixed_sentences(tiny_cache, spec, 100, held_out // 2)
    taken = next(bucket for bucket in buckets if bucket.number == number)
    assert {clip.clip_id for clip in sentences} == {clip.clip_id for clip in clips_read(tiny_cache, taken)}


def test_a_bucket_that_validation_does_not_read_is_not_compiled(tiny_cache):
    assert one_bucket(tiny_cache, batch_size=2).validates
    spec = load_spec(tiny_cache)
    bare = [spec.buckets[0].model_copy(update={"train": []}), *spec.buckets[1:]]
    spec = spec.model_copy(update={"buckets": bare})

    def compiled(most):
        return 0 in batch_sizes(spec, load_config("tiny", flags={"training.validation_clips": most}).training)

    assert [compiled(1), compiled(None)] == [any(validation_records(spec, 1)[0]), True]


def test_the_doctor_counts_the_blanks_of_what_is_read(tiny_cache):
    spec = load_spec(tiny_cache)
    counts = [bucket.clips("validation") for bucket in spec.buckets]
    sizes = {number: 2 * count for number, count in enumerate(counts) if count}
    flags = {"training.validation_clips": max(1, sum(counts) // 3)}
    assert blank_share(load_config("tiny", flags=flags), spec, sizes) > blank_share(load_config("tiny"), spec, sizes)
